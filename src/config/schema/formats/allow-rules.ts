/**
 * The format of `listen.allow`: `GET,POST /quotes`, several rules separated by semicolons; in a file also
 * `{ methods: [GET, POST], path: /quotes }`. The listener applies the rules.
 */
import { METHODS } from '../../../platform/http.ts';
import { maskPasswords } from '../../../platform/secret-redaction.ts';
import { checkedText, format, type Format, type JsonSchema } from './formats.ts';

/** A path of plain segments: no query, escape, empty segment or trailing slash, and no `*`, since there are no wildcards. */
const PLAIN_PATH = /^\/(?:[\w.~!$&'()+,=:@-]+(?:\/[\w.~!$&'()+,=:@-]+)*)?$/;
const ANY_METHOD = '*';
const NEVER_FORWARDED = ['CONNECT', 'SOURCE', 'TRACE'];
const RULE_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    methods: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' }, minItems: 1 }] },
    path: { type: 'string', pattern: '^ */' },
  },
  required: ['path'],
  additionalProperties: false,
};
const EXPECTED_RULES = 'rules such as "GET,POST /quotes", separated by semicolons (* for every method)';

export const plainPath = checkedText({
  expected: 'a path such as /quotes, without a slash at its end, escapes or dot segments',
  check: isPlainPath,
  pattern: PLAIN_PATH.source,
});

/** Reads `METHODS PATH`, without methods if every one is allowed; undefined for any other text. */
export function parseAllowRule(text: string) {
  const [, list, path] = /^(\S+) +(\S+)$/.exec(text) ?? [];
  if (list === undefined || path === undefined || !isPlainPath(path)) return undefined;
  const methods = list.split(',');
  if (list === ANY_METHOD) return { methods: undefined, path };
  return methods.every(isForwardedMethod) ? { methods, path } : undefined;
}

/** A list of rules; empty allows everything. */
export const allowRules: Format<readonly string[]> = format({
  expected: `${EXPECTED_RULES}; in a file also { methods: [GET, POST], path: /quotes }`,
  check: (value) => {
    if (!Array.isArray(value)) return false;
    const wrong = (value as unknown[]).find((entry) => typeof entry !== 'string' || ruleFault(entry) !== undefined);
    if (typeof wrong !== 'string') return wrong === undefined;
    return `rule ${JSON.stringify(maskPasswords(wrong))}: ${ruleFault(wrong) ?? ''}`;
  },
  fromText: splitRules,
  fromFile: (value) => {
    if (typeof value === 'string') return splitRules(value);
    return Array.isArray(value) ? (value as unknown[]).map(toRuleText) : value;
  },
  schema: { anyOf: [{ type: 'string' }, { type: 'array', items: { anyOf: [{ type: 'string' }, RULE_SCHEMA] } }] },
});

function splitRules(text: string): string[] {
  const rules = text.split(';').map((rule) => rule.trim());
  // A trailing semicolon is not an empty rule.
  if (rules.at(-1) === '') rules.pop();
  return rules;
}

/** The text form of an entry of a file; any other value is returned unchanged, and the check refuses it. */
function toRuleText(entry: unknown): unknown {
  if (!(entry instanceof Map)) return typeof entry === 'string' ? entry.trim() : entry;
  const { methods = [ANY_METHOD], path, ...others } = Object.fromEntries(entry) as Record<string, unknown>;
  const list = Array.isArray(methods) ? methods.join(',') : methods;
  return typeof list === 'string' && typeof path === 'string' && Object.keys(others).length === 0
    ? `${list} ${path}`
    : entry;
}

function ruleFault(text: string): string | undefined {
  if (parseAllowRule(text) !== undefined) return undefined;
  const [list = '', path, ...others] = text.split(/ +/);
  if (path === undefined || others.length > 0)
    return `expected methods, a blank and a path, such as "GET,POST /quotes"`;
  const unknown = list.split(',').find((method) => !isForwardedMethod(method));
  if (list !== ANY_METHOD && unknown !== undefined)
    return `${JSON.stringify(maskPasswords(unknown))} is not a method that is forwarded; expected names in capitals, or ${ANY_METHOD} alone`;
  return 'expected a path such as /quotes, without a slash at its end, escapes, query, wildcards or dot segments';
}

/** Whether it is a path as of `plainPath`. */
export function isPlainPath(path: string): boolean {
  return PLAIN_PATH.test(path) && path.split('/').every((segment) => segment !== '.' && segment !== '..');
}

/** Whether a method, in capitals, is ever forwarded. */
export function isForwardedMethod(name: string): boolean {
  return METHODS.includes(name) && !NEVER_FORWARDED.includes(name);
}
