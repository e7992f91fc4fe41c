/** A tracer sees each request once and in order, however it ends. */
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import type { RequestTracer } from '../../src/exchange/request-tracer.ts';
import { startProxy } from '../listener/proxy.ts';
import { call } from '../support/calls.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';

async function open(respond: RequestListener) {
  const upstream = createServer(respond);
  const url = await listenOnLoopback(upstream);
  onTestFinished(() => closeServer(upstream));
  const recorded: string[] = [];
  const tracer: RequestTracer = {
    traceId: 'ab'.repeat(16),
    startWait: (stage) => void recorded.push(`wait ${stage}`),
    endWait: () => void recorded.push('waited'),
    startAttempt: ({ method, path, baseUrl, headers }) => {
      recorded.push(`attempt ${method} ${baseUrl.origin === url ? path : baseUrl.origin}`);
      return [...headers, 'x-from-tracer', String(recorded.length)];
    },
    endAttempt: (end) => void recorded.push(end.kind),
    endRequest: ({ code, traceId }) =>
      void recorded.push(`ended ${String(code)} ${String(traceId === tracer.traceId)}`),
  };
  const proxy = await startProxy(url, { startTracer: () => tracer });
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  return { recorded, proxy };
}

it('adds its headers to the upstream request', async () => {
  const { recorded, proxy } = await open((request, response) => {
    response.end(String(request.headers['x-from-tracer']));
  });
  const response = await call(`${proxy.url}/quotes?a=b`, { method: 'POST', body: '{}' });
  await proxy.requestRecords(1);
  expect(response.text).toMatch(/^\d+$/);
  expect(recorded.filter((line) => !line.startsWith('wait'))).toEqual([
    'attempt POST /quotes?a=b',
    'relayed',
    'ended 200 true',
  ]);
});

it('traces each attempt to its end before the next one of a retried call', async () => {
  let calls = 0;
  const { recorded, proxy } = await open((_, response) => {
    response.writeHead(++calls === 1 ? 429 : 200, { 'retry-after': '0' }).end();
  });
  expect((await call(`${proxy.url}/quotes`)).status).toBe(200);
  await proxy.requestRecords(1);
  const story = recorded.slice(recorded.indexOf('attempt GET /quotes'));
  expect(story.filter((line) => line !== 'waited')).toEqual([
    'attempt GET /quotes',
    'held',
    'attempt GET /quotes',
    'relayed',
    'ended 200 true',
  ]);
});

it('ends every wait before anything else', async () => {
  const { recorded, proxy } = await open((_, response) => {
    response.end();
  });
  await call(`${proxy.url}/quotes`, { method: 'POST', body: '{}' });
  await proxy.requestRecords(1);
  for (const [index, line] of recorded.entries())
    if (line.startsWith('wait ')) expect(recorded[index + 1]).toBe('waited');
});

it('traces local replies and refused requests', async () => {
  const { recorded, proxy } = await open((_, response) => {
    response.end();
  });
  proxy.tokens.stop();
  expect((await call(`${proxy.url}/quotes`)).status).toBe(503);
  await proxy.requestRecords(1);
  expect(recorded).toEqual(['wait token', 'waited', 'ended 503 true']);
  await call(`${proxy.url}/quotes`, { headers: { host: 'evil.example' } });
  await proxy.requestRecords(2);
  expect(recorded.slice(3)).toEqual(['ended 403 true']);
});
