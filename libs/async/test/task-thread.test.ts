import { afterEach, describe, expect, it } from 'vitest';
import { TaskThread, type TaskThreadOptions } from '../src/index.ts';

type Task = { readonly say: string } | { readonly fail: string } | { readonly block: true } | { readonly exit: true };

const threads: TaskThread<Task, string>[] = [];
afterEach(async () => {
  for (const thread of threads.splice(0)) await thread.close();
});

function thread(more: Partial<TaskThreadOptions> = {}): TaskThread<Task, string> {
  const program = new URL('./task-thread-program.ts', import.meta.url);
  const started = new TaskThread<Task, string>({ program, name: 'test', taskMsMax: 60_000, tasksMax: 10, ...more });
  threads.push(started);
  return started;
}

describe('a thread for tasks', () => {
  it('answers each task, in the order of asking, from one thread', async () => {
    const tasks = thread();
    const answers = await Promise.all(['a', 'b', 'c'].map((say) => tasks.ask({ say })));
    expect(answers.map((answer) => answer.split(' ')[0])).toEqual(['a', 'b', 'c']);
    expect(new Set(answers.map((answer) => answer.split(' ')[1])).size).toBe(1);
  });

  it('rejects as the work does, with its message and code, and goes on', async () => {
    const tasks = thread();
    await expect(tasks.ask({ fail: 'ENOSPC' })).rejects.toMatchObject({ message: 'it failed', code: 'ENOSPC' });
    await expect(tasks.ask({ say: 'on' })).resolves.toMatch(/^on /u);
  });

  it('rejects a task that is late, and what waits behind it', async () => {
    const tasks = thread({ taskMsMax: 1 });
    const settled = await Promise.allSettled([tasks.ask({ block: true }), tasks.ask({ say: 'behind' })]);
    const late = { reason: { message: "the thread 'test' did not answer in time" } };
    expect(settled).toMatchObject([late, late]);
  });

  it('rejects what is under way when its thread ends, and the next task has another thread', async () => {
    const tasks = thread();
    await expect(tasks.ask({ exit: true })).rejects.toThrow('ended');
    await expect(tasks.ask({ say: 'on' })).resolves.toMatch(/^on /u);
  });

  it('ends with a task that is given up, and the next task has another thread', async () => {
    const tasks = thread({ tasksMax: 1 });
    const given = new AbortController();
    const blocked = tasks.ask({ block: true }, given.signal);
    given.abort(new Error('nobody wants it any more'));
    await expect(blocked).rejects.toThrow('nobody wants it any more');
    await expect(tasks.ask({ say: 'on' }, new AbortController().signal)).resolves.toMatch(/^on /u);
    await expect(tasks.ask({ say: 'no' }, given.signal)).rejects.toThrow('nobody wants it any more');
  });

  it('ends when it has had no task for a while, and starts again for the next one', async () => {
    const tasks = thread({ idleMsMax: 0 });
    const [, first] = (await tasks.ask({ say: 'a' })).split(' ');
    const next = async (): Promise<string | undefined> => (await tasks.ask({ say: 'b' })).split(' ')[1];
    await expect.poll(next, { timeout: 30_000 }).not.toBe(first);
  });

  it('refuses more tasks than it may hold, and all of them once it is closed', async () => {
    const tasks = thread({ tasksMax: 1 });
    const first = tasks.ask({ block: true }).catch((error: unknown) => error);
    await expect(tasks.ask({ say: 'a' })).rejects.toThrow('too much to do');
    await tasks.close();
    expect(await first).toMatchObject({ message: "the thread 'test' was closed" });
    await expect(tasks.ask({ say: 'a' })).rejects.toThrow('is closed');
  });
});
