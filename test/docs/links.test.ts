/** Links between pages name files, images and headings that exist. */
import { existsSync, globSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { PAGES, ROOT, anchorsOf, linksOf, readPage } from './pages.ts';

function faultOf(page: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : normalize(join(dirname(page), decodeURI(path)));
  if (!existsSync(join(ROOT, target))) return `${link}: no such file`;
  if (anchor === undefined || !target.endsWith('.md')) return undefined;
  return anchorsOf(target).has(anchor) ? undefined : `${link}: no such heading`;
}

test.each(PAGES)('the links of %s exist', (page) => {
  const inside = linksOf(page).filter((link) => !/^[a-z]+:/.test(link));
  expect(inside.map((link) => faultOf(page, link)).filter((fault) => fault !== undefined)).toEqual([]);
});

test('a broken link is reported', () => {
  expect(faultOf('README.md', 'docs/no-such-page.md')).toContain('no such file');
  expect(faultOf('README.md', 'docs/governor.md#no-such-heading')).toContain('no such heading');
  expect(PAGES.flatMap(linksOf).length).toBeGreaterThan(100);
});

test('every picture is shown on a page', () => {
  const shown = new Set(PAGES.flatMap((page) => linksOf(page).map((link) => normalize(join(dirname(page), link)))));
  const pictures = globSync('docs/images/*', { cwd: ROOT });
  expect(pictures.length).toBeGreaterThan(5);
  expect(pictures.filter((picture) => !shown.has(picture))).toEqual([]);
});

test('every page in docs is in docs/README.md', () => {
  const index = new Set(linksOf('docs/README.md').map((link) => normalize(join('docs', link.replace(/#.*/, '')))));
  const pages = PAGES.filter((page) => /^docs\/[^/]+\.md$/.test(page) && page !== 'docs/README.md');
  expect(pages.filter((page) => !index.has(page))).toEqual([]);
});

test('no page has a placeholder', () => {
  // The marks below are what this test refuses.
  expect(PAGES.filter((page) => /@@|\bTBD\b|\bFIXME\b/.test(readPage(page)))).toEqual([]);
});

test('every image has an alternative text', () => {
  const bare = PAGES.filter((page) => readPage(page).includes('![]('));
  expect(bare).toEqual([]);
});
