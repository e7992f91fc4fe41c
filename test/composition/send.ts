/** Requests of an application with any method, which can be aborted. */
import { Agent, request } from 'undici';
import type { Readable } from 'node:stream';

export interface Sent {
  readonly status: number;
  readonly fields: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The code of a local reply. */
  readonly code: string | undefined;
}

export interface SendOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | Readable;
  readonly signal?: AbortSignal;
}

/** One connection per request. */
const agent = new Agent({ pipelining: 0, headersTimeout: 0, bodyTimeout: 0 });

/** Sends a request and reads its whole response. */
export async function send(url: string, options: SendOptions = {}): Promise<Sent> {
  const { method = 'GET', headers = {}, body = null, signal } = options;
  const response = await request(url, {
    dispatcher: agent,
    method: method,
    headers: { ...headers },
    body,
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.body.text();
  return { status: response.statusCode, fields: response.headers, text, code: localCode(response.headers, text) };
}

/** Sends a request that the caller aborts by `leave`; its outcome is ignored. */
export function sendAndLeave(url: string, options: SendOptions = {}): { leave: () => void } {
  const aborter = new AbortController();
  send(url, { ...options, signal: aborter.signal }).catch(() => undefined);
  return { leave: () => aborter.abort() };
}

function localCode(fields: Sent['fields'], text: string): string | undefined {
  if (fields['content-type'] !== 'application/problem+json' || fields['proxy-status'] === undefined) return undefined;
  return (JSON.parse(text) as { code: string }).code;
}
