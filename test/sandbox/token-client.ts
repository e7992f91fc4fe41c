/** A client of the simulated authorization server that can send faulty requests. */
import { systemClock, type Clock } from '../../src/platform/clock.ts';
import { startAuthorizationServer } from '../../src/sandbox/authorization-server.ts';
import type { RegisteredClient } from '../../src/sandbox/authorization-server.ts';
import type { AuthorizationServer } from '../../src/sandbox/authorization-server.ts';
import { DEFAULT_SCENARIO, type SandboxScenario } from '../../src/sandbox/scenario.ts';
import { fetch, IDENTITY } from './https-client.ts';

export const AUDIENCE = 'https://api.example/';

/** A valid form. */
export const FORM = `grant_type=client_credentials&audience=${AUDIENCE}`;

const started: AuthorizationServer[] = [];

/** Starts a server that knows `client` with `secret`. */
export async function start(
  clock: Clock = systemClock,
  client: Partial<RegisteredClient> = {},
  scenario: Partial<SandboxScenario> = {},
): Promise<AuthorizationServer> {
  const known = { id: 'client', secret: 'secret', audience: AUDIENCE, ...client };
  const server = await startAuthorizationServer(IDENTITY, known, { ...DEFAULT_SCENARIO, ...scenario }, clock);
  started.push(server);
  return server;
}

/** Closes every server that `start` started. */
export async function closeStarted(): Promise<void> {
  await Promise.all(started.splice(0).map((server) => server.close()));
}

export interface TokenResponse {
  readonly status: number;
  readonly field: (name: string) => string | null;
  readonly body: Record<string, unknown>;
}

export interface TokenRequest {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

export function basic(credentials: string): string {
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

/** Sends a valid request with the given changes. */
export async function ask(
  url: URL,
  { method = 'POST', headers = {}, body }: TokenRequest = {},
): Promise<TokenResponse> {
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const response = await fetch(url, {
    method,
    headers: { authorization: basic('client:secret'), ...form, ...headers },
    body: body ?? null,
  });
  const parsed = (await response.json()) as Record<string, unknown>;
  return { status: response.status, field: (name) => response.headers.get(name), body: parsed };
}

/** Requests a token. */
export async function fetchToken(server: AuthorizationServer): Promise<string> {
  const { body } = await ask(server.tokenUrl, { body: FORM });
  return String(body.access_token);
}
