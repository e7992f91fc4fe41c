/**
 * Finds the header fields of a refusal that look like a rate limit and that are not read (pure), with the meaning that
 * `throttle.hints` could give them.
 */
import { suggestMeaning, type HintMeaning } from './hint-meanings.ts';
import { DESCRIPTIVE_FIELD } from './vendor-fields.ts';

/** Names that suggest a limit. */
export const LIMIT_RELATED_NAME = /limit|quota|throttl|retry|back-?off|remaining/i;
/** Names whose values may be credentials: neither is shown. */
export const SENSITIVE_NAME = /auth|cookie|secret|session|signature|token$/i;

export interface UnreadField {
  /** In lower case. */
  readonly name: string;
  readonly value: string;
  /** Undefined when name and value suggest none. */
  readonly suggestion: HintMeaning | undefined;
}

const MAX_UNREAD_FIELDS = 8;

/** @param headers values by lower-case name */
export function findUnreadFields(
  headers: ReadonlyMap<string, string> | undefined,
  isRead: (lowerCaseName: string) => boolean,
): UnreadField[] {
  const unread: UnreadField[] = [];
  for (const [name, value] of headers ?? []) {
    if (unread.length >= MAX_UNREAD_FIELDS) break;
    if (isRead(name) || SENSITIVE_NAME.test(name) || DESCRIPTIVE_FIELD.test(name)) continue;
    unread.push({ name, value, suggestion: suggestMeaning(name, value) });
  }
  return unread;
}
