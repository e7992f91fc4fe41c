/** The format of `throttle.hints`: the meanings of header fields by their names. */
import { HINT_MEANINGS } from '../../../throttle/signals/hinted-quotas.ts';
import { HEADER_NAME } from './credentials.ts';
import { format, type Format, type TextMap } from './formats.ts';
import { textMap } from './one-or-many.ts';

const MAX_HINTS = 32;
const MAX_NAME_LENGTH = 100;

/** At most 32 fields, each once in any case. */
export function fieldHints(): Format<TextMap> {
  const map: Format<TextMap> = textMap({
    expected: 'field names with meanings; as a variable a JSON object such as {"X-Quota-Left":"remaining"}',
    nameFault: (name) =>
      HEADER_NAME.test(name) && name !== '__proto__' && name.length <= MAX_NAME_LENGTH
        ? undefined
        : 'expected a field name such as X-Quota-Left',
    valueFault: (meaning) =>
      HINT_MEANINGS.some((known) => known === meaning)
        ? undefined
        : `expected one of ${HINT_MEANINGS.join(', ')}; found ${JSON.stringify(meaning.slice(0, MAX_NAME_LENGTH))}`,
  });
  return format({
    expected: map.expected,
    check: (value) => {
      map(value);
      const names = Object.keys(value);
      if (names.length > MAX_HINTS)
        return `expected at most ${String(MAX_HINTS)} fields; found ${String(names.length)}`;
      const twice = names.find((name, at) => names.findIndex((other) => isSameField(name, other)) < at);
      return twice === undefined || `${JSON.stringify(twice)} is there twice: the case of a field name does not count`;
    },
    fromText: map.fromText,
    fromFile: map.fromFile,
    schema: { type: 'object', additionalProperties: { enum: HINT_MEANINGS }, maxProperties: MAX_HINTS },
  });
}

function isSameField(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}
