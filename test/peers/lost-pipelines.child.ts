/**
 * Child of lost-pipelines.test.ts: pipelined requests whose connection is lost in every combination of how, and of how far their
 * responses were. Prints what was left after each of them, and ends with the first that leaves something.
 */
import { startProxy } from '../listener/proxy.ts';
import { openSocket } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { waitUntil } from '../support/until.ts';

const HOST = 'Host: 127.0.0.1\r\n';
const REQUESTS: Readonly<Record<string, string>> = {
  waiting: `GET /never HTTP/1.1\r\n${HOST}\r\n`,
  done: `GET /done HTTP/1.1\r\n${HOST}\r\n`,
  large: `GET /large HTTP/1.1\r\n${HOST}\r\n`,
  unfinished: `GET /unfinished HTTP/1.1\r\n${HOST}\r\n`,
  refused: `GET /refused HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n`,
  upload: `POST /never HTTP/1.1\r\n${HOST}Content-Length: 4\r\n\r\nbody`,
};
const BEHIND: readonly (readonly string[])[] = [
  ...Object.keys(REQUESTS).map((kind) => [kind]),
  Object.keys(REQUESTS),
  Array<string>(63).fill('waiting'),
];
const LOST_BY = ['reset', 'fin', 'upstream'] as const;

let fault: string | undefined;
let cut: PromiseWithResolvers<unknown> = Promise.withResolvers();
const upstream = await startRecordingUpstream(async ({ path }, response) => {
  if (path === '/done') response.end('done');
  if (path === '/large') response.end(Buffer.alloc(300_000));
  if (path === '/unfinished') response.writeHead(200, { 'content-length': '9' }).write('half');
  if (path !== '/cut') return;
  response.writeHead(200, { 'content-length': '9' }).write('half');
  await cut.promise;
  response.destroy();
});
const proxy = await startProxy(upstream.url, { maxInFlight: 200, maxStreams: 200 });
for (const kinds of BEHIND) for (const lostBy of LOST_BY) fault ??= await findFault(kinds, lostBy);
console.log(JSON.stringify(fault ?? 'none'));
process.exit();

async function findFault(kinds: readonly string[], lostBy: (typeof LOST_BY)[number]): Promise<string | undefined> {
  cut = Promise.withResolvers();
  const [seen, ended] = [upstream.requests.length, proxy.ended().length];
  const socket = await openSocket(proxy.url);
  socket.on('error', () => socket.destroy()).resume();
  const first = `GET /${lostBy === 'upstream' ? 'cut' : 'never'} HTTP/1.1\r\n${HOST}\r\n`;
  socket.write(first + kinds.map((kind) => REQUESTS[kind] ?? '').join(''));
  const forwarded = 1 + kinds.filter((kind) => kind !== 'refused').length;
  await waitUntil(() => upstream.requests.length === seen + forwarded, 'the requests are at the upstream');
  await someTurns();
  if (lostBy === 'reset') socket.resetAndDestroy();
  else if (lostBy === 'fin') socket.end();
  else cut.resolve(undefined);
  await waitUntil(() => proxy.server.connections.state().connections === 0, 'the connection has closed');
  socket.destroy();
  await someTurns();
  const { queued, inFlight, streams } = proxy.throttle.state();
  const left = { requests: proxy.server.activeRequests.count, queued, inFlight, streams };
  const recorded = proxy.ended().length - ended;
  const isClean = Object.values(left).every((count) => count === 0) && recorded === 1 + kinds.length;
  if (isClean) return undefined;
  const what = `${lostBy}, ${String(kinds.length)} behind it, the first ${kinds[0] ?? ''}`;
  return `${what}: left ${JSON.stringify(left)}, recorded ${String(recorded)} of ${String(1 + kinds.length)}`;
}

/** What has been sent has arrived by then: upstream and sidecar run in this process. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
}
