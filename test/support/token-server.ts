/**
 * A token endpoint with failures, delays and lifetimes on demand, for what a real authorization server does not do on
 * demand (test/support/authorization-server.ts is one). Every token it gives is registered as a secret.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRecordingUpstream } from './recording-upstream.ts';
import type { RecordedRequest } from './recording-upstream.ts';
import { registerSecret } from './secrets.ts';

export interface TokenServerOptions {
  /** `expires_in` of every token, seconds. Default 3600. */
  readonly expiresIn?: number;
  /** Time between request and response, milliseconds. Default 0. */
  readonly delayMs?: number;
  /** Every response waits for it. */
  readonly waitsFor?: Promise<unknown>;
  /** Asked for each request; true: it gets a 503. Default: none fails. */
  readonly isDown?: () => boolean;
}

export interface IssuedToken {
  readonly value: string;
  /** When it was issued and when it ends, of `performance.now()`. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

export interface TokenServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly RecordedRequest[];
  readonly issued: readonly IssuedToken[];
}

export async function startTokenServer(options: TokenServerOptions = {}): Promise<TokenServer> {
  const { expiresIn = 3600, delayMs = 0, waitsFor, isDown } = options;
  const issued: IssuedToken[] = [];
  const upstream = await startRecordingUpstream(async (_request, response) => {
    if (delayMs > 0) await sleep(delayMs);
    await waitsFor;
    if (isDown?.() === true) {
      response.writeHead(503).end();
      return;
    }
    const value = `tok-${randomBytes(18).toString('base64url')}`;
    registerSecret('an access token', value);
    const issuedAt = performance.now();
    issued.push({ value, issuedAt, expiresAt: issuedAt + expiresIn * 1000 });
    response
      .writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
      .end(JSON.stringify({ access_token: value, token_type: 'Bearer', expires_in: expiresIn, scope: '' }));
  });
  return {
    url: upstream.url,
    get requests() {
      return upstream.requests;
    },
    issued,
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}
