/** Requests to the configured admin port of a running sidecar. Another program may respond there: what is used is checked. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { ListenAddress } from '../platform/host-header.ts';
import type { Config } from '../config/config.ts';
import { DEFAULT_CLIENT_SETTINGS } from '../config/default-client-settings.ts';
import { loadConfig, type LoadOptions } from '../config/load/load.ts';
import { formatProblems } from '../config/load/problems.ts';
import type { Status } from '../admin/status/status.ts';
import { get } from '../platform/http.ts';
import { parseJsonObject } from '../token/endpoint/json-object.ts';

const MAX_RESPONSE_LENGTH = 1_000_000;
const RESPONSE_TIMEOUT_MS = 2000;
const MAX_SHOWN_LENGTH = 300;
const FOREIGN = 'what responds is not a bearer-sidecar: its /status has another form';

/** The settings of the partner that a command without calls to it needs to load the configuration. */
const PRESET = {
  name: 'health',
  values: {
    ...DEFAULT_CLIENT_SETTINGS,
    'upstream.baseUrl': 'http://localhost',
    'auth.url': 'http://localhost',
    'auth.clientId': 'none',
    'auth.clientSecret': 'none',
    'auth.audience': 'http://localhost',
  },
};

/** Undefined, with the problems on stderr, when the configuration is invalid. Settings of the partner may be missing. */
export function loadWithoutPartner(load: LoadOptions): Config | undefined {
  const loaded = loadConfig({ ...load, preset: PRESET });
  if (loaded.ok) return loaded.config;
  process.stderr.write(formatProblems(loaded.problems));
  return undefined;
}

export function loadAdminAddress(load: LoadOptions): ListenAddress | undefined {
  return loadWithoutPartner(load)?.admin.address;
}

export interface AdminPortResponse {
  /** Undefined without a whole response. */
  readonly status: number | undefined;
  /** The body, or why there is none. */
  readonly text: string;
}

/** Never rejects. @param until aborts the request, also within the response */
export async function requestAdminPort(
  address: ListenAddress,
  path: string,
  until: AbortSignal,
): Promise<AdminPortResponse> {
  const explain = (why: string) => ({ status: undefined, text: `the admin port does not respond (${why})` });
  let text: string | undefined;
  try {
    const request = get({ ...toConnectTarget(address), path, signal: until, headers: { host: '127.0.0.1' } });
    // Without a response and an error it closes where another program changes the protocol.
    const [response] = (await Promise.race([once(request, 'response'), once(request, 'close')])) as [IncomingMessage?];
    if (response === undefined) return explain('it closed the connection without a response');
    text = '';
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
      text += chunk;
      if (text.length > MAX_RESPONSE_LENGTH) return explain('its response is too long');
    }
    return { status: response.statusCode, text: text.trim() };
  } catch (error) {
    if (until.aborted) return explain('timeout');
    return explain(text === undefined ? (error as Error).message : 'it closed the connection within its response');
  }
}

/** Options for an HTTP request. A sidecar that listens on all addresses is reached by the loopback one. */
function toConnectTarget(address: ListenAddress) {
  if (address.kind === 'unix') return { socketPath: address.path };
  const { host, port } = address;
  if (host === 'localhost' || host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}

/** As `requestAdminPort`, where any other response than a sidecar's with 200 is none. @param stop aborts the request */
export async function readAdminText(
  address: ListenAddress,
  path: '/status' | '/status.txt' | '/limits.txt',
  stop: AbortSignal,
): Promise<AdminPortResponse> {
  const until = AbortSignal.any([stop, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]);
  const { status, text } = await requestAdminPort(address, path, until);
  const isOwn = path === '/status' ? parseStatus(text) !== undefined : text.startsWith('bearer-sidecar ');
  if (status === undefined || (status === 200 && isOwn)) return { status, text };
  const foreign = `the admin port responds with ${status}: ${text.slice(0, MAX_SHOWN_LENGTH)}`;
  return { status: undefined, text: status === 200 ? FOREIGN : foreign };
}

export interface RunningStatus {
  readonly pid?: unknown;
  readonly configuration?: Partial<NonNullable<Status['configuration']>> | null;
}

/** Undefined for the text of another program. */
export function parseStatus(text: string): RunningStatus | undefined {
  const found = parseJsonObject(text);
  const isOwn = typeof found?.version === 'string' && isFilledList(found.tokens) && isFilledList(found.throttles);
  return isOwn ? found : undefined;
}

function isFilledList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}
