/** The stream of docs/llm-gateway.md: curl calls with a placeholder key, gets events as they come, and leaves in the middle. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { scratchFile } from '../config/base-env.ts';
import { IDLE, startInProcess, until } from './in-process.ts';
import { send } from './send.ts';

function readCommand(url: string): string {
  const page = readFileSync(join(import.meta.dirname, '../../docs/llm-gateway.md'), 'utf8');
  const [, command = ''] = /```text\n(curl .*)\n```/.exec(page) ?? [];
  expect(command).toContain('http://localhost:18080');
  return command.replace('http://localhost:18080', url);
}

it('is forwarded event by event, and ends upstream when its client leaves', async () => {
  const streams: ServerResponse[] = [];
  const { url, api, throttle } = await startInProcess({
    env: {
      SIDECAR_LISTEN_REQUIRED_HEADER_NAME: 'Authorization',
      SIDECAR_LISTEN_REQUIRED_HEADER_VALUE_FILE: scratchFile('Bearer local-key\n'),
    },
    respond: (_, response) => {
      streams.push(response);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"n":1}\n\n');
    },
  });
  for (const headers of [{}, { authorization: 'Bearer another' }])
    expect((await send(`${url}/chat/completions`, { headers })).status).toBe(403);

  const curl = spawn('/bin/sh', ['-c', `exec ${readCommand(url)}`], { stdio: ['ignore', 'pipe', 'ignore'] });
  let received = '';
  curl.stdout.on('data', (chunk: Buffer) => (received += chunk.toString()));
  for (const n of [1, 2, 3]) {
    if (n > 1) streams[0]?.write(`data: {"n":${String(n)}}\n\n`);
    await until(() => received.endsWith(`{"n":${String(n)}}\n\n`), `event ${String(n)} has come`);
  }
  expect(await throttle()).toEqual({ ...IDLE, streams: 1 });
  curl.kill('SIGINT');
  await once(curl, 'exit');
  await until(() => streams[0]?.destroyed === true, 'the stream of the gateway has ended');
  await until(async () => (await throttle()).streams === 0, 'the place of the stream is free');
  expect(api.requests).toHaveLength(1);
  const [call] = api.requests;
  expect(call?.path).toBe('/chat/completions');
  expect(call?.rawHeaders.join('|')).not.toContain('local-key');
  expect(call?.headers.authorization).toMatch(/^Bearer token-1-/);
});
