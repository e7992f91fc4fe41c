/** Starts the simulated API in virtual time and calls it over HTTP. */
import type { Response } from 'undici';
import { startSalesApi } from '../../src/sandbox/sales-api.ts';
import type { SalesApi } from '../../src/sandbox/sales-api.ts';
import { DEFAULT_SCENARIO, KNOWN_SCOPES, type SandboxScenario } from '../../src/sandbox/scenario.ts';
import { TokenIssuer } from '../../src/sandbox/token-issuer.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { fetch, IDENTITY } from './https-client.ts';

export const AUDIENCE = 'https://api.example/';

const started: SalesApi[] = [];

/** Ends every API that a `Partner` started. */
export async function closeStarted(): Promise<void> {
  await Promise.all(started.splice(0).map((api) => api.close()));
}

/** A simulated API in virtual time, the issuer of its tokens, and a client with a valid token. */
export class Partner {
  readonly clock = new ManualClock();
  readonly issuer = new TokenIssuer(this.clock);
  #api: SalesApi | undefined;

  /** @param given without limits it has none */
  static async start(given: Partial<SandboxScenario> = {}): Promise<Partner> {
    const partner = new Partner();
    const { clock, issuer: tokens } = partner;
    const scenario = { ...DEFAULT_SCENARIO, limits: [], ...given };
    partner.#api = await startSalesApi({ identity: IDENTITY, tokens, audience: AUDIENCE, clock, scenario });
    started.push(partner.api);
    return partner;
  }

  get api(): SalesApi {
    if (this.#api === undefined) throw new Error('not started');
    return this.#api;
  }

  token(scope = KNOWN_SCOPES.join(' '), audience = AUDIENCE, role = 'seller'): string {
    return this.issuer.issue({ clientId: 'client', audience, scope, role });
  }

  async get(path: string, authorization = `Bearer ${this.token()}`): Promise<Response> {
    return fetch(this.api.baseUrl.href + path, { headers: { authorization } });
  }

  async post(path: string, body: unknown, fields: Record<string, string> = {}): Promise<Response> {
    return fetch(this.api.baseUrl.href + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.token()}`, 'content-type': 'application/json', ...fields },
      body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
    });
  }
}
