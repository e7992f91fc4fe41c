/** A client that states what it sends and compares what comes back (witness.ts), over a pool of connections. */
import { request } from 'undici';
import type { Dispatcher } from 'undici';
import {
  REPLY_FIELD,
  RunningDigest,
  WITNESS_FIELD,
  contentOf,
  findAlteration,
  formatStatement,
  parseStatement,
  replyTo,
  stateBody,
} from './witness.ts';
import type { Digest, Framing } from './witness.ts';

export interface WitnessedCall {
  /** No two calls of a run have the same. */
  readonly id: string;
  readonly method?: 'GET' | 'POST' | 'PUT';
  readonly requestBytes?: number;
  readonly replyBytes?: number;
  readonly replyFraming?: Framing;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What came of a call: a status, and what is wrong with the response; `cut` = it broke off. */
export interface WitnessedOutcome {
  readonly status: number | 'cut';
  /** The body of a response that is not a 200, as text; '' otherwise. */
  readonly text: string;
  readonly alteration: string | undefined;
}

/** The header fields that a call's request needs. */
export function witnessFields(call: WitnessedCall): Record<string, string> {
  const { id, requestBytes = 0, replyBytes = 0, replyFraming = 'length' } = call;
  return {
    [WITNESS_FIELD]: formatStatement(stateBody(id, contentOf(id, requestBytes))),
    [REPLY_FIELD]: `${String(replyBytes)} ${replyFraming}`,
    ...call.headers,
  };
}

/** Never rejects. @param url with the path */
export async function callWitnessed(
  dispatcher: Dispatcher,
  url: string,
  call: WitnessedCall,
): Promise<WitnessedOutcome> {
  const { id, requestBytes = 0, method = requestBytes > 0 ? 'POST' : 'GET' } = call;
  const body = requestBytes > 0 ? contentOf(id, requestBytes) : null;
  const received = new RunningDigest();
  try {
    const response = await request(url, { dispatcher, method, headers: witnessFields(call), body });
    if (response.statusCode !== 200)
      return { status: response.statusCode, text: await response.body.text(), alteration: undefined };
    for await (const chunk of response.body as AsyncIterable<Buffer>) received.add(chunk);
    return { status: 200, text: '', alteration: findReplyAlteration(call, response.headers[WITNESS_FIELD], received) };
  } catch {
    return { status: 'cut', text: '', alteration: undefined };
  }
}

/** What is wrong with a 200 that passed for complete. @param stated the response's own statement */
export function findReplyAlteration(call: WitnessedCall, stated: unknown, received: Digest): string | undefined {
  const { id, replyBytes = 0 } = call;
  const owner = parseStatement(stated)?.id;
  if (owner !== id) return `client: ${id} got the response to ${owner ?? 'nothing that was stated'}`;
  const alteration = findAlteration(stateBody(id, replyTo(id, replyBytes)), received);
  return alteration === undefined ? undefined : `client: response to ${alteration}`;
}
