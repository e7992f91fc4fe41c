/** A client that states what it sends and compares what comes back (witness.ts), over a pool of connections. */
import { request } from 'undici';
import type { Dispatcher } from 'undici';
import {
  RESPONSE_HEADER,
  IncrementalDigest,
  DIGEST_HEADER,
  contentOf,
  findAlteration,
  formatStatedBody,
  parseStatedBody,
  responseBodyOf,
  stateBody,
} from './witness.ts';
import type { BodyDigest, Framing } from './witness.ts';

export interface VerifiedCall {
  /** No two calls of a run have the same. */
  readonly id: string;
  readonly method?: 'GET' | 'POST' | 'PUT';
  readonly requestBytes?: number;
  readonly responseBytes?: number;
  readonly responseFraming?: Framing;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What came of a call: a status, and what is wrong with the response; `cut` = it broke off. */
export interface VerifiedOutcome {
  readonly status: number | 'cut';
  /** The body of a response that is not a 200, as text; '' otherwise. */
  readonly text: string;
  readonly alteration: string | undefined;
}

/** The header fields that a call's request needs. */
export function verificationHeaders(call: VerifiedCall): Record<string, string> {
  const { id, requestBytes = 0, responseBytes = 0, responseFraming = 'length' } = call;
  return {
    [DIGEST_HEADER]: formatStatedBody(stateBody(id, contentOf(id, requestBytes))),
    [RESPONSE_HEADER]: `${String(responseBytes)} ${responseFraming}`,
    ...call.headers,
  };
}

/** Never rejects. @param url with the path */
export async function callVerified(dispatcher: Dispatcher, url: string, call: VerifiedCall): Promise<VerifiedOutcome> {
  const { id, requestBytes = 0, method = requestBytes > 0 ? 'POST' : 'GET' } = call;
  const body = requestBytes > 0 ? contentOf(id, requestBytes) : null;
  const received = new IncrementalDigest();
  try {
    const response = await request(url, { dispatcher, method, headers: verificationHeaders(call), body });
    if (response.statusCode !== 200)
      return { status: response.statusCode, text: await response.body.text(), alteration: undefined };
    for await (const chunk of response.body as AsyncIterable<Buffer>) received.add(chunk);
    return {
      status: 200,
      text: '',
      alteration: findResponseAlteration(call, response.headers[DIGEST_HEADER], received),
    };
  } catch {
    return { status: 'cut', text: '', alteration: undefined };
  }
}

/** What is wrong with a 200 that passed for complete. @param stated the response's own statement */
export function findResponseAlteration(call: VerifiedCall, stated: unknown, received: BodyDigest): string | undefined {
  const { id, responseBytes = 0 } = call;
  const owner = parseStatedBody(stated)?.id;
  if (owner !== id) return `client: ${id} got the response to ${owner ?? 'nothing that was stated'}`;
  const alteration = findAlteration(stateBody(id, responseBodyOf(id, responseBytes)), received);
  return alteration === undefined ? undefined : `client: response to ${alteration}`;
}
