package demo

const fence = "```"

const greeting = `Hi! I'm doing well, thank you. I am Preheat's scripted demo model: no language model is connected yet, so I only know a few prepared answers.

Ask me for a random excuse for being late to a meeting, in Python, Bash or JavaScript, or for a plot, and press **Run** under the code.`

const thanks = `You're welcome! Anything else to run? I can write an excuse generator, a plot, a Bash one-liner or a JavaScript snippet.`

const abilities = `I am Preheat's scripted demo model. I can:

- write Python code that generates a random excuse for being late to a meeting, and the same in Bash or JavaScript,
- draw a plot with matplotlib,
- list prime numbers,
- show a Bash one-liner or a JavaScript snippet.

Every block of code has a Run button: it runs in a fresh sandbox that was already warm. For everything else, connect a real model by setting ` + "`PREHEAT_LLM_URL`" + `.`

const connect = `I am Preheat's scripted demo model, and I have no prepared answer to that. To talk to a real model, point Preheat at any OpenAI-compatible server and start it again:

` + fence + `text
PREHEAT_LLM_URL=http://127.0.0.1:11434/v1
PREHEAT_LLM_MODEL=the-name-of-a-model
PREHEAT_LLM_API_KEY=only-if-the-server-asks-for-one
` + fence + `

A model served by Ollama, llama.cpp or vLLM on this machine at its usual port is found without any of that, a few moments after it starts.

Until then, try: "Write Python code that generates a random excuse for being late to a meeting".`

const excusePython = `This program picks a reason, a detail and a promise at random and joins them to an excuse. Press **Run** to hear one; every run may give another.

` + fence + `python
import random

reasons = [
    "my alarm clock joined a union",
    "the elevator insisted on stopping at every floor",
    "my cat sat down on the laptop and would not be moved",
    "the coffee machine asked for a firmware update",
    "my calendar was still in another time zone",
]
details = [
    "and negotiations took longer than planned",
    "which had never happened before",
    "while three people watched",
    "and nobody knew the password",
]
promises = [
    "I'll bring cake next time.",
    "It won't happen again this week.",
    "What did I miss?",
]

print(f"Sorry I'm late: {random.choice(reasons)}, {random.choice(details)}. {random.choice(promises)}")
` + fence + `

It uses only the standard library, so it needs no network and nothing to install.`

const excuseBash = `Here it is as a Bash one-liner: ` + "`shuf`" + ` picks one of the lines.

` + fence + `bash
echo "Sorry I'm late: $(printf '%s\n' 'my alarm clock joined a union' 'the elevator stopped at every floor' 'my cat sat on the laptop' 'the coffee machine wanted an update' | shuf -n 1)."
` + fence

const excuseJavaScript = `The same in JavaScript, for Node:

` + fence + `javascript
const reasons = [
  "my alarm clock joined a union",
  "the elevator stopped at every floor",
  "my cat sat down on the laptop",
  "the coffee machine asked for a firmware update",
];

const pick = (list) => list[Math.floor(Math.random() * list.length)];

console.log(` + "`Sorry I'm late: ${pick(reasons)}.`" + `);
` + fence

const plotPython = `This draws a damped sine wave with its envelope. The figure appears below the code when you run it.

` + fence + `python
import numpy as np
import matplotlib.pyplot as plt

t = np.linspace(0, 10, 500)
envelope = np.exp(-t / 4)

plt.figure(figsize=(7, 4))
plt.plot(t, envelope * np.sin(3 * t), label="damped sine")
plt.plot(t, envelope, "--", color="gray", label="envelope")
plt.plot(t, -envelope, "--", color="gray")
plt.xlabel("time")
plt.ylabel("amplitude")
plt.legend()
plt.title("A damped oscillation")
plt.show()
` + fence

const numbersPython = `This prints the prime numbers below 100, by the sieve of Eratosthenes.

` + fence + `python
limit = 100
sieve = [True] * limit
sieve[0:2] = [False, False]
for n in range(2, int(limit**0.5) + 1):
    if sieve[n]:
        sieve[n * n :: n] = [False] * len(sieve[n * n :: n])

print(*[n for n, prime in enumerate(sieve) if prime])
` + fence

const numbersBash = `As a Bash one-liner: ` + "`factor`" + ` prints a number and its factors, and a prime has only itself.

` + fence + `bash
seq 2 100 | factor | awk 'NF == 2 { print $2 }' | paste -sd ' '
` + fence

const numbersJavaScript = `The prime numbers below 100 in JavaScript:

` + fence + `javascript
const primes = [];
for (let n = 2; n < 100; n++) {
  if (primes.every((p) => n % p !== 0)) primes.push(n);
}
console.log(primes.join(" "));
` + fence

const snippetPython = `Here is a small Python program that looks around in its sandbox.

` + fence + `python
import platform
import sys

print(f"Hello from Python {platform.python_version()} on {sys.platform}!")
print("Squares:", [n * n for n in range(1, 11)])
` + fence

const snippetBash = `Here is a Bash one-liner: the five most frequent letters of a sentence.

` + fence + `bash
echo "the quick brown fox jumps over the lazy dog" | grep -o '[a-z]' | sort | uniq -c | sort -rn | head -5
` + fence

const snippetJavaScript = `Here is a JavaScript snippet for Node: it counts the words of a sentence.

` + fence + `javascript
const text = "a sandbox that is warm is a sandbox that is fast";
const counts = new Map();
for (const word of text.split(" ")) {
  counts.set(word, (counts.get(word) ?? 0) + 1);
}
console.table([...counts].map(([word, count]) => ({ word, count })));
` + fence
