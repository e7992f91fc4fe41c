/** The rules of `throttle.refusals` applied to a response head: is it a rate-limit refusal, or does its body decide. Pure. */
import type { RefusalRule } from '../../throttle/refusal-rule.ts';
import { findHeaderValues, listReceivedHeaders, type ResponseHead } from '../../upstream/upstream-response.ts';

/** True or false: the head decides. Texts: it is a refusal if the body contains one of them. */
export type EvaluateHead = (head: ResponseHead) => boolean | readonly Buffer[];

interface CompiledRule {
  readonly status: number;
  readonly headerName: string | undefined;
  /** Lower case; undefined: any. */
  readonly headerValue: string | undefined;
  readonly text: Buffer | undefined;
}

export const EVENT_STREAM = /^text\/event-stream\b/i;
const ALWAYS_REFUSAL = 429;

/**
 * Undefined without rules: then a response costs nothing. A body that is encoded, and an event stream, are not read: their rules with a text
 * do not match.
 */
export function createRefusalRules(rules: readonly RefusalRule[]): EvaluateHead | undefined {
  const compiled = rules.map(compileRule);
  if (compiled.length === 0) return undefined;
  return (head) => {
    if (head.status === ALWAYS_REFUSAL) return true;
    const matching = compiled.filter((rule) => rule.status === head.status && matchesHeader(rule, head));
    const texts = matching.flatMap(({ text }) => text ?? []);
    if (texts.length < matching.length) return true;
    const isReadable = !EVENT_STREAM.test(head.contentType ?? '') && isIdentityCoded(head);
    return isReadable && texts.length > 0 ? texts : false;
  };
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
