Promise.reject(new Error("nobody catches this"));
setTimeout(() => console.log("never"), 1000);
