setTimeout(() => { console.log("leaving"); process.exit(5); }, 10);
setInterval(() => {}, 1000);
