/** The attempts that wait for their connection or their response: what the verdict reads to see an upstream that does not respond. */
import { expect, it, onTestFinished } from 'vitest';
import { afterHead, startWireServer, until } from '../upstream/wire.ts';
import { startProxy } from './proxy.ts';

it('lists an attempt from its permit to its response head', async () => {
  let respond: (() => void) | undefined;
  const upstream = await startWireServer((socket, received) => {
    respond = () => afterHead('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha')(socket, received);
  });
  onTestFinished(() => upstream[Symbol.asyncDispose]());
  const proxy = await startProxy(upstream.url.href);
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const { activeRequests } = proxy.server;
  const before = performance.now();
  const client = new AbortController();
  const response = fetch(`${proxy.url}/quotes`, { signal: client.signal });
  await until(() => respond !== undefined);
  const [pending, ...others] = activeRequests.listPending();
  expect(pending).toMatchObject({ route: 'default', wasSent: true });
  expect(pending?.startedAt).toBeGreaterThan(before);
  expect(others).toEqual([]);
  respond?.();
  await response;
  // The body has not ended.
  expect([activeRequests.count, activeRequests.listPending()]).toEqual([1, []]);
  client.abort();
});
