/** A list of names and values. */
import { markup } from './markup.ts';
import type { Content, Markup } from './markup.ts';

/** Leaves out those whose value is false. */
export function renderFacts(facts: readonly (readonly [name: string, value: Content])[]): Markup {
  return markup`<dl class="facts">
${facts.filter(([, value]) => value !== false).map(([name, value]) => markup`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`;
}
