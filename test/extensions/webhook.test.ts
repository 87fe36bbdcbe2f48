import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { folderWith, runExtension } from './run-extension.ts';

interface Received {
  readonly type: string | undefined;
  readonly body: unknown;
}

async function receiver(answers: readonly number[]): Promise<{ readonly url: string; readonly received: Received[] }> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void textOf(request).then((text) => {
      received.push({ type: request.headers['content-type'], body: JSON.parse(text) });
      response.writeHead(answers[received.length - 1] ?? 200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?secret=x`, received };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

const ENV = {
  PENSTOCK_PIPELINE: 'web "site"',
  PENSTOCK_RUN_ID: 'r-1',
  PENSTOCK_STAGE: 'tell',
  PENSTOCK_REF: 'refs/heads/main',
};

describe('notify/webhook', () => {
  it('sends what there is to say as JSON, whatever stands in it', async () => {
    const { url, received } = await receiver([]);
    const message = 'quotes " \\ and\nlines\tand \u0001 and é 🚀 and $(touch hacked)';
    const { code, output, outputs } = await runExtension(
      'notify/webhook',
      { url, message, status: 'SUCCESS' },
      { cwd: folderWith(), env: ENV },
    );
    expect([code, output, outputs]).toEqual([0, 'Told (200)\n', { 'status-code': '200' }]);
    expect(received).toEqual([
      {
        type: 'application/json',
        body: {
          message,
          status: 'SUCCESS',
          pipeline: 'web "site"',
          run_id: 'r-1',
          stage: 'tell',
          repository: '',
          ref: 'refs/heads/main',
          commit: '',
        },
      },
    ]);
  });

  it('speaks to chats in their own form', async () => {
    const { url, received } = await receiver([]);
    for (const format of ['slack', 'discord'])
      await runExtension(
        'notify/webhook',
        { url, message: 'Built', status: 'FAILED', format },
        { cwd: folderWith(), env: ENV },
      );
    const text = 'Built: FAILED (web "site", run r-1)';
    expect(received.map(({ body }) => body)).toEqual([{ text }, { content: text }]);
  });

  it('tries again where the receiver is in trouble, and not where it refuses', async () => {
    const trouble = await receiver([503, 200]);
    expect(await runExtension('notify/webhook', { url: trouble.url }, { cwd: folderWith() })).toMatchObject({
      code: 0,
      outputs: { 'status-code': '200' },
    });
    expect(trouble.received).toHaveLength(2);
    const refusing = await receiver([404]);
    expect(await runExtension('notify/webhook', { url: refusing.url }, { cwd: folderWith() })).toMatchObject({
      code: 1,
      outputs: { 'status-code': '404' },
      output: 'webhook: the receiver could not be told: it answers 404\n',
    });
    expect(refusing.received).toHaveLength(1);
  });

  it('need not succeed, and says so without the address', async () => {
    const end = await runExtension(
      'notify/webhook',
      { url: 'http://127.0.0.1:1/secret', attempts: '1', 'must-succeed': 'false' },
      { cwd: folderWith() },
    );
    expect(end).toEqual({
      code: 0,
      outputs: { 'status-code': '000' },
      output: 'webhook: the receiver could not be told: it cannot be reached or does not answer\n',
    });
  });

  it.each([
    [{ url: 'file:///etc/passwd' }, "'url' must begin with http:// or https://"],
    [{ url: 'http://x\nurl = file:///etc/passwd' }, "'url' holds blanks or control characters"],
    [{ url: 'http://x', attempts: '11' }, "'attempts' must be 1 to 10"],
    [{ url: 'http://x', 'timeout-seconds': '1.5' }, "'timeout-seconds' must be a whole number"],
  ])('refuses %j', async (inputs, message) => {
    expect(await runExtension('notify/webhook', inputs, { cwd: folderWith() })).toEqual({
      code: 1,
      outputs: {},
      output: `webhook: ${message}\n`,
    });
  });
});
