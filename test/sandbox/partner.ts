/** Starts the simulated API in virtual time and calls it over HTTP. */
import { fetch } from 'undici';
import type { Response } from 'undici';
import { startSalesApi } from '../../src/sandbox/sales-api.ts';
import type { SalesApi, SalesApiOptions } from '../../src/sandbox/sales-api.ts';
import { KNOWN_SCOPES } from '../../src/sandbox/authorization-server.ts';
import { TokenIssuer } from '../../src/sandbox/token-issuer.ts';
import { ManualClock } from '../support/manual-clock.ts';

export const AUDIENCE = 'https://api.example/';

const UNLIMITED = { permitsPerSecond: 1000, burst: 1000 };

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

  static async start(options: Partial<SalesApiOptions> = {}): Promise<Partner> {
    const partner = new Partner();
    const { clock, issuer: tokens } = partner;
    partner.#api = await startSalesApi({ tokens, audience: AUDIENCE, limit: UNLIMITED, clock, ...options });
    started.push(partner.api);
    return partner;
  }

  get api(): SalesApi {
    if (this.#api === undefined) throw new Error('not started');
    return this.#api;
  }

  token(scope = KNOWN_SCOPES.join(' '), audience = AUDIENCE): string {
    return this.issuer.issue({ clientId: 'client', audience, scope });
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
