/**
 * Cookies of a partner, kept by real client programs: `Secure`, `HttpOnly` and the partner's `Domain`, although the client calls
 * `http://localhost`. Two routes set cookies of the same name, which must not mix. The API's side decides what counts.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeConfigFile } from '../support/config-file.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RecordingUpstream } from '../support/recording-upstream.ts';
import { startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { runClient } from './client-stacks/client-program.ts';
import { WAYS } from './client-stacks/cells.ts';
import { PARTNER_HOST, partnerSettings } from './client-stacks/site.ts';
import { CLIENT_STACKS, buildClients } from './client-stacks/stacks.ts';
import type { BuiltClients } from './client-stacks/stacks.ts';

const KEEPS_COOKIES = new Set([
  'Java HttpClient',
  'Java HttpClient, HTTP/1.1',
  'Java HttpURLConnection',
  'Go net/http',
  'Perl LWP',
  'Python requests',
  'Python httpx',
]);

const running = new AsyncDisposableStack();
let upstream: RecordingUpstream;
let sidecar: RunningSidecar;
let built: BuiltClients;

beforeAll(async () => {
  upstream = running.use(
    await startRecordingUpstream((request, response) => {
      const [, api, route = '', call] = request.path.split('/');
      // As a partner sets it, for its own name, TLS and path.
      const session = `session=of-${route}; Path=/${api ?? ''}/${route}; Domain=${PARTNER_HOST}; Secure; HttpOnly; SameSite=None`;
      const affinity = `affinity=node-${route}; Path=/${api ?? ''}/${route}; Domain=.${PARTNER_HOST}; Secure`;
      if (call === 'login') response.setHeader('set-cookie', [session, affinity]);
      response.end('{}');
    }),
  );
  const tokens = running.use(await startTokenServer());
  const { port } = new URL(upstream.url);
  const routes = ['a', 'b'].map((name) => ({
    name,
    pathPrefix: `/${name}`,
    stripPrefix: true,
    baseUrl: `http://${PARTNER_HOST}:${port}/api/${name}`,
  }));
  const file = running.use(await writeConfigFile(JSON.stringify({ routes })));
  const env = {
    ...partnerSettings(upstream, tokens.url),
    SIDECAR_BASE_URL: '',
    SIDECAR_CONFIG: file.path,
    SIDECAR_LISTEN_FORWARD_PROXY: 'true',
  };
  sidecar = running.use(await startSidecar({ name: 'client-cookies', env }));
  await waitUntilReady(sidecar);
  built = running.use(buildClients());
});

afterAll(() => running.disposeAsync());

describe.each(WAYS)('with the sidecar as %s', (way) => {
  test.each(CLIENT_STACKS.filter(({ name }) => KEEPS_COOKIES.has(name)).map((stack) => [stack.name, stack] as const))(
    '%s sends the cookies of a login with the next call, and each route its own',
    async (_, stack) => {
      const { port } = new URL(sidecar.proxyUrl);
      const proxyUrl = `http://localhost:${port}`;
      const before = upstream.requests.length;
      const reports = await runClient({
        ...{ stack, built, folder: built.folder, cells: ['cookies'] },
        baseUrl: way === 'direct' ? proxyUrl : `http://${PARTNER_HOST}/api`,
        ...(way === 'direct' ? {} : { proxyUrl }),
      });
      expect(reports.get('cookies')?.error).toBeUndefined();
      const received = upstream.requests.slice(before).map(({ path, headers }) => [path, cookiesOf(headers.cookie)]);
      expect(received).toEqual([
        ['/api/a/login', []],
        ['/api/b/login', []],
        ['/api/a/account', ['affinity=node-a', 'session=of-a']],
        ['/api/b/account', ['affinity=node-b', 'session=of-b']],
      ]);
    },
  );
});

/** Sorted; Java also states the version of RFC 2965. */
function cookiesOf(field: string | undefined): string[] {
  const pairs = field?.split(/[;,] */).map((pair) => pair.replaceAll('"', '')) ?? [];
  return pairs.filter((pair) => !pair.startsWith('$')).toSorted();
}
