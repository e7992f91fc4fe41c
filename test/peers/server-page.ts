/** The generated parts of docs/authorization-servers.md: sections between markers, and the settings for each product. Pure. */
import type { Count, MethodColumn } from './server-methods.ts';
import { SERVER_SHAPES } from './server-shapes.ts';
import type { ServerShape } from './server-shapes.ts';

/** Relative to the project's folder. */
export const SERVER_PAGE = 'docs/authorization-servers.md';

/** What came of the stub of a product. */
export interface StubResult {
  readonly name: string;
  readonly methods: ReadonlyMap<MethodColumn, 'stub' | 'not run' | 'fails'>;
  /** Refusals with the expected reply; undefined when the run failed. */
  readonly refusals: Count | undefined;
}

/** @throws Error when the page has no such section */
export function replaceSection(page: string, section: string, text: string): string {
  const [begin, end] = [`<!-- begin ${section} -->`, `<!-- end ${section} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${SERVER_PAGE} has no section ${section}`);
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`;
}

export function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

export function renderStubs(results: readonly StubResult[]): string {
  const rows = results.map(({ name, methods }) => {
    const named = (...outcomes: readonly string[]): string =>
      [...methods]
        .filter(([, outcome]) => outcomes.includes(outcome))
        .map(([method, outcome]) => (outcome === 'fails' ? `${method} fails` : method))
        .join('; ') || 'none';
    return [name, named('stub', 'fails'), named('not run')];
  });
  return `${renderTable(['product', 'works with the stub', 'not run'], rows)}\n\n${describeRefusals(results)}`;
}

function describeRefusals(results: readonly StubResult[]): string {
  const counts = results.map(({ refusals }) => refusals).filter((count) => count !== undefined);
  const sum = (member: keyof Count): string => String(counts.reduce((total, count) => total + count[member], 0));
  const failed = results.filter(({ refusals }) => refusals === undefined).map(({ name }) => `${name} fails`);
  return [`Refusals with the expected reply: ${sum('obtained')} of ${sum('tried')}`, ...failed].join('; ') + '.';
}

export function renderProducts(): string {
  return SERVER_SHAPES.map(renderProduct).join('\n\n');
}

function renderProduct({ name, auth, remarks, sources }: ServerShape): string {
  const lines = auth.split('\n').map((line) => `  ${line}`);
  const links = sources.map((url, index) => `[${String(index + 1)}](${url})`).join(', ');
  return [
    `### ${name}`,
    '',
    '```yaml',
    'auth:',
    ...lines,
    '```',
    '',
    [...remarks, `Sources: ${links}.`].join(' '),
  ].join('\n');
}
