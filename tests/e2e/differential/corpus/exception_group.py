import asyncio
async def bad(n):
    await asyncio.sleep(0)
    raise ValueError(n)
async def main():
    async with asyncio.TaskGroup() as g:
        g.create_task(bad(1))
        g.create_task(bad(2))
asyncio.run(main())
