/** Advice as HTML (pure): sentences with settings and commands in backticks, from the verdict and from the table of alerts. */
import { markup } from './markup.ts';
import type { Markup } from './markup.ts';

/** Nothing without a sentence. */
export function renderAdvice(sentences: readonly string[]): Markup {
  if (sentences.length === 0) return markup``;
  return markup`<div class="advice"><h3>What to do</h3><ul>${sentences.map(
    (sentence) => markup`<li>${renderCode(sentence)}</li>`,
  )}</ul></div>`;
}

function renderCode(sentence: string): Markup[] {
  return sentence.split('`').map((part, index) => (index % 2 === 1 ? markup`<code>${part}</code>` : markup`${part}`));
}
