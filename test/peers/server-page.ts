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
  if (from < 0 || to < from) throw new Error(`the page has no section ${section}`);
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`;
}

/** @param results by method, such as `any secret` */
export function renderServer(label: string, results: ReadonlyMap<MethodColumn, string>): string {
  const groups = Map.groupBy(results, ([, result]) => result);
  const parts = [...groups].map(([result, methods]) => `${result} with ${nameMethods(methods.map(([name]) => name))}`);
  return `- ${label}: ${parts.join('; ')}`;
}

export function renderStubs(results: readonly StubResult[]): string {
  const lines = results.map(({ name, methods }) => {
    const groups = Map.groupBy(methods, ([, outcome]) => outcome);
    const namesOf = (outcome: 'stub' | 'not run' | 'fails'): MethodColumn[] =>
      (groups.get(outcome) ?? []).map(([method]) => method);
    const [others, failing] = [namesOf('not run'), namesOf('fails')];
    return [
      `- ${name}: ${nameMethods(namesOf('stub'))}`,
      ...(failing.length === 0 ? [] : [`fails: ${nameMethods(failing)}`]),
      ...(others.length === 0 ? [] : [`not run: ${nameMethods(others)}`]),
    ].join('; ');
  });
  return `${lines.join('\n')}\n\n${describeRefusals(results)}`;
}

/** `client_secret_basic, raw` becomes `client_secret_basic (raw)`. */
function nameMethods(methods: readonly MethodColumn[]): string {
  return methods.map((method) => method.replace(/, (\w+)$/, ' ($1)')).join(', ');
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
