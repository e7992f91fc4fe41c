/** Reads from an answer's head that the token lacks a scope (RFC 6750 §3.1): no wait and no other token of its kind helps. */
import type { AnswerHead } from '../upstream/answer-head.ts';

export interface ScopeRefusal {
  /** The scope that the answer says is needed, bounded; undefined when it does not. */
  readonly needed: string | undefined;
}

const LONGEST_SCOPE = 256;
const ERROR = /\berror\s*=\s*"?insufficient_scope\b/i;
/** The characters of RFC 6749 §3.3. */
const NEEDED = /[\s,]scope\s*=\s*"([\x21\x23-\x5b\x5d-\x7e ]+)"/i;

/** Undefined when the answer is no such refusal. */
export function readScopeRefusal({ status, fields }: Pick<AnswerHead, 'status' | 'fields'>): ScopeRefusal | undefined {
  if (status !== 403) return undefined;
  const challenge = fields.find(
    (value, at) => at % 2 === 1 && fields[at - 1]?.toLowerCase() === 'www-authenticate' && ERROR.test(value),
  );
  return challenge === undefined ? undefined : { needed: NEEDED.exec(challenge)?.[1]?.slice(0, LONGEST_SCOPE) };
}
