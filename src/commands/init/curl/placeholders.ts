/** Values of documents that stand for others: `$CLIENT_ID`, `<client_id>`, `YOUR_API_KEY`. A variable is marked by noncharacters. Pure. */

/** No pasted text holds them, since such a text is refused. */
const [OPEN, CLOSE] = ['\uFDD0', '\uFDD1'] as const;
const MARKED = new RegExp(`${OPEN}([^${CLOSE}]*)${CLOSE}`, 'g');

export function markExpansion(name: string): string {
  return OPEN + name + CLOSE;
}

export function hasExpansion(word: string): boolean {
  return word.includes(OPEN);
}

export function showExpansions(word: string): string {
  return word.replaceAll(MARKED, '$$$1');
}

const MAX_PLACEHOLDER_CHARS = 100;
const PLACEHOLDER_FORMS: readonly RegExp[] = [
  /^<[a-z][\w .:/()-]+>$/i,
  /^\{\{?\s*[a-z][\w .-]+\}?\}$/i,
  /^\[[a-z][\w .-]+\]$/i,
  /^%[a-z_]\w+%$/i,
  /^\$\{?\w*(?:id|client|secret|token|password|key|audience|scope|url|user)\w*\}?$/i,
  /^(?:your|my|the|insert|enter)[ _-](?:[a-z\d]+[ _-])*(?:id|secret|key|token|password|audience|scope|user(?:name)?)(?:[ _-]here)?$/i,
  /^(?:client|app|application|consumer)[ _-]?(?:id|secret|key)$/i,
  /^(?:x{4,}|\*{3,}|\.{3,}|…)$/i,
];

export function isPlaceholder(value: string): boolean {
  return (
    hasExpansion(value) || (value.length <= MAX_PLACEHOLDER_CHARS && PLACEHOLDER_FORMS.some((form) => form.test(value)))
  );
}

/** In a URL, or in a text that names one, a part alone may be a placeholder. */
export function hasPlaceholderPart(text: string): boolean {
  return isPlaceholder(text) || /<[a-z][\w .-]+>|\{[a-z][\w.-]+\}|%7B[a-z][\w.-]+%7D/i.test(text);
}

/** A placeholder as it stands in the document. What looks like a variable may be a part of a secret, and is shown only by a usual name. */
export function showPlaceholder(text: string): string {
  const shown = showExpansions(text);
  if (PLACEHOLDER_FORMS.some((form) => form.test(shown.slice(0, MAX_PLACEHOLDER_CHARS)))) return shown;
  if (hasExpansion(text)) return 'has a variable in it';
  return /<[^<>]{1,60}>|\{+[^{}]{1,60}\}+/.exec(text)?.[0] ?? 'not readable';
}
