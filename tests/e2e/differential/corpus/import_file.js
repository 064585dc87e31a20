(async () => { const m = await import("./lib.mjs"); console.log(m.default, Object.keys(m)); })();
