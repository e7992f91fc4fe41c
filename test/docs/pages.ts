/** The Markdown pages that users read, as data: fenced blocks, links, anchors. It reads the part of CommonMark that these pages use. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..', '..');

/** Relative to the project's folder. */
export const PAGES: readonly string[] = globSync(
  ['*.md', 'config/*.md', 'docs/**/*.md', 'deploy/**/*.md', 'test/**/*.md'],
  { cwd: ROOT, exclude: (name) => name === 'node_modules' || name === '.output' },
).sort();

/** A fenced block. */
export interface Block {
  readonly page: string;
  /** Of its first line of content, from 1. */
  readonly line: number;
  /** The info string of the fence; '' without one. */
  readonly language: string;
  readonly text: string;
}

/** @throws Error when the page does not exist */
export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** @throws Error when a fence is not closed */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  let open: { indent: string; language: string; line: number; lines: string[] } | undefined;
  for (const [index, line] of readPage(page).split('\n').entries()) {
    const fence = /^( *)```(\w*)/.exec(line);
    if (open !== undefined && fence === null) open.lines.push(line.slice(open.indent.length));
    else if (open !== undefined) {
      blocks.push({ page, line: open.line, language: open.language, text: open.lines.join('\n') });
      open = undefined;
    } else if (fence !== null) open = { indent: fence[1] ?? '', language: fence[2] ?? '', line: index + 2, lines: [] };
  }
  if (open !== undefined) throw new Error(`${page}:${String(open.line)}: this fence is not closed`);
  return blocks;
}

/** The page without its fenced blocks. */
export function proseOf(page: string): string {
  return readPage(page).replace(/^( *)```.*?^\1```$/gms, '');
}

/** Targets of links and images, as written; without those in angle brackets. */
export function linksOf(page: string): string[] {
  const prose = proseOf(page).replaceAll(/`[^`\n]*`/g, '');
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset)="([^"]+)"/g)];
  return links.map(([, link, source]) => link ?? source ?? '');
}

/** The headings, as GitHub writes them in a link's fragment. */
export function anchorsOf(page: string): Set<string> {
  const seen = new Map<string, number>();
  const anchors = new Set<string>();
  for (const [, heading = ''] of proseOf(page).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const slug = heading
      .replaceAll(/[`*]/g, '')
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${String(count)}`);
  }
  return anchors;
}
