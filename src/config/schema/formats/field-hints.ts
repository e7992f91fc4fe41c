/** The format of `throttle.hints`: the meanings of header fields by their names. */
import { HINT_MEANINGS } from '../../../throttle/signals/hinted-quotas.ts';
import { HEADER_NAME } from './credentials.ts';
import { format, type Format, type TextMap } from './formats.ts';
import { map } from './one-or-many.ts';

const MAX_HINTS = 32;
const MAX_NAME_LENGTH = 100;

const meanings: Format<TextMap> = map(
  'field names with meanings',
  '{"X-Quota-Left":"remaining"}',
  (name) =>
    HEADER_NAME.test(name) && name !== '__proto__' && name.length <= MAX_NAME_LENGTH
      ? undefined
      : 'expected a field name such as X-Quota-Left',
  (meaning) => {
    if (typeof meaning !== 'string') return 'must be a text in quotes';
    return HINT_MEANINGS.some((known) => known === meaning)
      ? undefined
      : `expected one of ${HINT_MEANINGS.join(', ')}; found ${JSON.stringify(meaning.slice(0, MAX_NAME_LENGTH))}`;
  },
);

/** At most 32 fields, each once in any case. */
export const fieldHints: Format<TextMap> = format({
  ...meanings,
  check: (value) => {
    meanings(value);
    const names = Object.keys(value).map((name) => name.toLowerCase());
    if (names.length > MAX_HINTS) return `expected at most ${String(MAX_HINTS)} fields; found ${String(names.length)}`;
    const at = names.findIndex((name, index) => names.indexOf(name) < index);
    const twice = JSON.stringify(Object.keys(value)[at]);
    return at < 0 || `${twice} is there twice: the case of a field name does not count`;
  },
  schema: { type: 'object', additionalProperties: { enum: HINT_MEANINGS }, maxProperties: MAX_HINTS },
});
