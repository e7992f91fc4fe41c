/**
 * Plain calls to the sidecar, as an application makes them; every response is read to its end. A body is stated (witness.ts), and the
 * recording upstream compares it.
 */
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'undici';
import { DIGEST_HEADER, formatStatedBody, stateBody } from './witness.ts';

export interface CallResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** As many connections as there are calls, none of them kept. */
const agent = new Agent({ pipelining: 0, headersTimeout: 120_000, bodyTimeout: 120_000 });

export async function call(url: string, options: CallOptions = {}): Promise<CallResponse> {
  const { method = 'GET', headers = {}, body = null } = options;
  const stated = body === null ? {} : { [DIGEST_HEADER]: formatStatedBody(stateBody(randomUUID(), Buffer.from(body))) };
  const response = await request(url, { dispatcher: agent, method, headers: { ...stated, ...headers }, body });
  return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
}

/** A POST of a JSON object. */
export function post(
  url: string,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<CallResponse> {
  const body = JSON.stringify(value);
  return call(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });
}

/** Makes `count` calls at the same time. */
export function callConcurrently<T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => make(index)));
}
