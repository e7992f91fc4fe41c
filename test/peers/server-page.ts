/** The generated parts of docs/authorization-servers.md: sections between markers, and the settings for each product. Pure. */
import { SERVER_SHAPES } from './server-shapes.ts';
import type { ServerShape } from './server-shapes.ts';

/** Relative to the project's folder. */
export const SERVER_PAGE = 'docs/authorization-servers.md';

/** @throws Error when the page has no such section */
export function replaceSection(page: string, section: string, text: string): string {
  const [begin, end] = [`<!-- begin ${section} -->`, `<!-- end ${section} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${SERVER_PAGE} has no section ${section}`);
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`;
}

export function renderProducts(): string {
  return SERVER_SHAPES.map(renderProduct).join('\n\n');
}

function renderProduct({ name, auth, remarks, sources }: ServerShape): string {
  const lines = auth.split('\n').map((line) => `  ${line}`);
  return [
    `### ${name}`,
    '',
    '```yaml',
    'upstream:',
    '  baseUrl: https://api.partner.example',
    'auth:',
    ...lines,
    '  clientIdFile: /run/secrets/client-id',
    '  clientSecretFile: /run/secrets/client-secret',
    '```',
    '',
    [...remarks, `Sources: ${sources.map((url, index) => `[${String(index + 1)}](${url})`).join(', ')}.`].join(' '),
  ].join('\n');
}
