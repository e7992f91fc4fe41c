/** The rules of `throttle.refusals` applied to a response head: is it a rate-limit refusal, or does its body decide. Pure. */
import type { RefusalRule } from '../../throttle/refusal-rule.ts';
import { listReceivedHeaders, type ResponseHead } from '../../upstream/upstream-response.ts';

/** True or false: the head decides. Texts: it is a refusal if the body contains one of them. */
export type HeadEvaluation = boolean | readonly Buffer[];

interface CompiledRule {
  readonly status: number;
  readonly headerName: string | undefined;
  /** Lower case; undefined: any. */
  readonly headerValue: string | undefined;
  readonly text: Buffer | undefined;
}

export const EVENT_STREAM = /^text\/event-stream\b/i;
const CONTENT_ENCODING = 'content-encoding';
const ALWAYS_REFUSAL = 429;

export class RefusalRules {
  readonly #rules: readonly CompiledRule[];

  constructor(rules: readonly RefusalRule[]) {
    this.#rules = rules.map(compileRule);
  }

  /** A body that is encoded, and an event stream, are not read: their rules with a text do not match. */
  evaluate(head: ResponseHead): HeadEvaluation {
    if (head.status === ALWAYS_REFUSAL) return true;
    const texts: Buffer[] = [];
    for (const rule of this.#rules) {
      if (rule.status !== head.status || !matchesHeader(rule, head)) continue;
      if (rule.text === undefined) return true;
      texts.push(rule.text);
    }
    const isReadable = !EVENT_STREAM.test(head.contentType ?? '') && isIdentityCoded(listReceivedHeaders(head));
    return isReadable && texts.length > 0 ? texts : false;
  }
}

/** Undefined without rules: then a response costs nothing. */
export function createRefusalRules(rules: readonly RefusalRule[]): RefusalRules | undefined {
  return rules.length === 0 ? undefined : new RefusalRules(rules);
}

function compileRule({ status, header, bodyContains }: RefusalRule): CompiledRule {
  const colon = header?.indexOf(':') ?? -1;
  const name = colon === -1 ? header : header?.slice(0, colon);
  return {
    status,
    headerName: name?.trim().toLowerCase(),
    headerValue:
      colon === -1
        ? undefined
        : header
            ?.slice(colon + 1)
            .trim()
            .toLowerCase(),
    text: bodyContains === undefined ? undefined : Buffer.from(bodyContains),
  };
}

function matchesHeader({ headerName, headerValue }: CompiledRule, head: ResponseHead): boolean {
  if (headerName === undefined) return true;
  return findValues(listReceivedHeaders(head), headerName).some(
    (value) => headerValue === undefined || value === headerValue,
  );
}

function isIdentityCoded(headers: readonly string[]): boolean {
  return findValues(headers, CONTENT_ENCODING).every((coding) => coding === '' || coding === 'identity');
}

function findValues(headers: readonly string[], lowerCaseName: string): string[] {
  return headers.flatMap((value, at) =>
    at % 2 === 1 && headers[at - 1]?.toLowerCase() === lowerCaseName ? [value.trim().toLowerCase()] : [],
  );
}
