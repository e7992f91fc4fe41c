/** The rules of `throttle.refusals` applied to a response head: is it a rate-limit refusal, or does its body decide. Pure. */
import type { RefusalRule } from '../../throttle/refusal-rule.ts';
import { findHeaderValues, listReceivedHeaders, type ResponseHead } from '../../upstream/upstream-response.ts';

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
    const isReadable = !EVENT_STREAM.test(head.contentType ?? '') && isIdentityCoded(head);
    return isReadable && texts.length > 0 ? texts : false;
  }
}

/** Undefined without rules: then a response costs nothing. */
export function createRefusalRules(rules: readonly RefusalRule[]): RefusalRules | undefined {
  return rules.length === 0 ? undefined : new RefusalRules(rules);
}

function compileRule({ status, header, bodyContains }: RefusalRule): CompiledRule {
  const [, name, value] = /^([^:]*)(?::(.*))?$/s.exec(header ?? '') ?? [];
  return {
    status,
    headerName: header === undefined ? undefined : name?.trim().toLowerCase(),
    headerValue: value?.trim().toLowerCase(),
    text: bodyContains === undefined ? undefined : Buffer.from(bodyContains),
  };
}

function matchesHeader({ headerName, headerValue }: CompiledRule, head: ResponseHead): boolean {
  if (headerName === undefined) return true;
  return findValues(head, headerName).some((value) => headerValue === undefined || value === headerValue);
}

function isIdentityCoded(head: ResponseHead): boolean {
  return findValues(head, 'content-encoding').every((coding) => coding === '' || coding === 'identity');
}

function findValues(head: ResponseHead, lowerCaseName: string): string[] {
  return findHeaderValues(listReceivedHeaders(head), lowerCaseName).map((value) => value.trim().toLowerCase());
}
