/**
 * The format of `throttle.refusals`: a list of `{ status, header, bodyContains }`; in a variable a JSON array. The exchange applies
 * the rules.
 */
import type { RefusalRule } from '../../../throttle/refusal-rule.ts';
import type { JsonSchema } from './formats.ts';
import { sectionList } from './one-or-many.ts';

const MAX_TEXT_LENGTH = 1000;
const HEADER = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*:[ \t]*[!-~](?:[ -~]*[!-~])?)?$/;
const BODYLESS = [204, 304];
const RULE_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    status: { type: 'integer', minimum: 200, maximum: 599, not: { enum: [401] } },
    header: { type: 'string', pattern: HEADER.source },
    bodyContains: { type: 'string', minLength: 1, maxLength: MAX_TEXT_LENGTH },
  },
  required: ['status'],
  additionalProperties: false,
  // A success is a refusal by its text only; some statuses have no text.
  if: { properties: { bodyContains: true }, required: ['bodyContains'] },
  then: { properties: { status: { not: { enum: BODYLESS } } } },
  else: { properties: { status: { type: 'integer', minimum: 300 } } },
};

/** A list of rules; empty by default. */
export const refusalRules = sectionList<readonly RefusalRule[]>({
  noun: 'rule',
  maxEntries: 20,
  members: ['status', 'header', 'bodyContains'],
  required: 'status is',
  example: '[{"status":503},{"status":200,"bodyContains":"limit exceeded"}]',
  section: 'status, header and bodyContains',
  schema: RULE_SCHEMA,
  complete: (rule) => rule,
  describe: () => '',
  findFault: ({ status, header, bodyContains }) =>
    findStatusFault(status, bodyContains !== undefined) ?? findHeaderFault(header) ?? findTextFault(bodyContains),
});

function findStatusFault(status: unknown, hasText: boolean): string | undefined {
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599)
    return 'status: expected a whole number from 200 to 599, without quotes';
  if (status === 401) return 'status: 401 means that the token was refused, and renews it; expected another status';
  if (status < 300 && !hasText) return `status: ${String(status)} is a success; expected bodyContains with it`;
  return hasText && BODYLESS.includes(status)
    ? `bodyContains: a response of ${String(status)} has no body; expected another status`
    : undefined;
}

function findHeaderFault(header: unknown): string | undefined {
  const isValid = header === undefined || (typeof header === 'string' && HEADER.test(header));
  return isValid
    ? undefined
    : 'header: expected a field name such as X-Limited, or a name and its value, "X-Limited: yes"';
}

function findTextFault(text: unknown): string | undefined {
  const isValid = text === undefined || (typeof text === 'string' && text.length > 0 && text.length <= MAX_TEXT_LENGTH);
  return isValid ? undefined : `bodyContains: expected a text of 1 to ${String(MAX_TEXT_LENGTH)} characters, in quotes`;
}
