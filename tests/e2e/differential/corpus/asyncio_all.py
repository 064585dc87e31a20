import asyncio, sys
async def tick(n):
    await asyncio.sleep(0.01 * n)
    return n
async def main():
    print(await asyncio.gather(*(tick(n) for n in range(4))))
    p = await asyncio.create_subprocess_exec(sys.executable, "-c", "print('sub')", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0], p.returncode)
    try:
        await asyncio.wait_for(asyncio.sleep(5), 0.02)
    except TimeoutError as e:
        print(repr(e))
asyncio.run(main())
asyncio.create_task(tick(1))
