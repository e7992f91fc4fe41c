/** Which series a selector means (pure). */
import type { Labels, Selector } from './samples.ts';

/** Selectors are few and written in the code. */
const patterns = new Map<string, RegExp>();

export function matchLabels(labels: Labels, selector: Selector): boolean {
  for (const [name, pattern] of Object.entries(selector)) {
    const value = labels[name] ?? '';
    // A plain value needs no expression.
    if (value !== pattern && !compile(pattern).test(value)) return false;
  }
  return true;
}

/** The pattern that matches this text alone. */
export function quotePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

function compile(pattern: string): RegExp {
  let compiled = patterns.get(pattern);
  if (compiled === undefined) patterns.set(pattern, (compiled = new RegExp(`^(?:${pattern})$`)));
  return compiled;
}
