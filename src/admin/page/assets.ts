/**
 * The files of the page: named by what is in them, so that a browser may keep them for good, and packed for browsers that take it.
 * Read when the page is asked for the first time.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { readAsset } from '../../platform/asset.ts';
import type { AdminResponse } from '../admin-response.ts';
import type { PageAssetPaths } from './status-page.ts';

const compress = promisify(gzip);

const CONTENT_TYPES = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
} as const;
const ICON_SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#1f5fbf"/><path d="M3 9.5h3l1.5-5 2 8 1.5-4.5h2" fill="none" stroke="#fff" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"/></svg>`;

interface PageAsset {
  readonly type: string;
  readonly tag: string;
  readonly uncompressed: Buffer;
  readonly compressed: Buffer;
}

/** All of them. */
export interface PageAssets {
  /** Paths to be put into the page. */
  readonly paths: PageAssetPaths;
  /** By path; undefined for what is none of them. */
  respond(path: string, request: Pick<IncomingMessage, 'headers'>): AdminResponse | undefined;
}

/** @throws the file system's error when one is missing */
export async function loadPageAssets(): Promise<PageAssets> {
  const files = new Map<string, PageAsset>();
  const add = async (name: string, plain: Buffer): Promise<string> => {
    const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 12);
    const [base = '', kind = ''] = name.split('.');
    const path = `/assets/${base}-${hash}.${kind}`;
    const type = CONTENT_TYPES[kind as keyof typeof CONTENT_TYPES];
    files.set(path, { type, tag: `"${hash}"`, uncompressed: plain, compressed: await compress(plain, { level: 9 }) });
    return path;
  };
  const places: PageAssetPaths = {
    'page.js': await add('page.js', readAsset('page.js')),
    'plots.js': await add('plots.js', readAsset('plots.js')),
    'page.css': await add('page.css', readAsset('page.css')),
    'uPlot.js': await add('uPlot.js', readAsset('uPlot.js')),
    'uPlot.css': await add('uPlot.css', readAsset('uPlot.css')),
    'icon.svg': await add('icon.svg', Buffer.from(ICON_SVG)),
  };
  return {
    paths: places,
    respond(path, request) {
      const file = files.get(path);
      return file && respondWithAsset(file, request);
    },
  };
}

/** Packs what is drawn anew each time. */
export async function compressResponse(
  answer: AdminResponse,
  request: Pick<IncomingMessage, 'headers'>,
): Promise<AdminResponse> {
  const headers = { ...answer.headers, Vary: 'Accept-Encoding' };
  if (!acceptsGzip(request)) return { ...answer, headers };
  return { ...answer, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: await compress(answer.body) };
}

function respondWithAsset(
  { type, tag, uncompressed, compressed: small }: PageAsset,
  request: Pick<IncomingMessage, 'headers'>,
): AdminResponse {
  const kept = { 'Cache-Control': 'private, max-age=31536000, immutable', ETag: tag, Vary: 'Accept-Encoding' };
  if (request.headers['if-none-match']?.includes(tag) === true) return { status: 304, headers: kept, body: '' };
  const headers = { ...kept, 'Content-Type': type };
  return acceptsGzip(request)
    ? { status: 200, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: small }
    : { status: 200, headers, body: uncompressed };
}

/** RFC 9110 §12.5.3, as far as browsers and curl write it: `gzip` is named, and not with a weight of zero. */
function acceptsGzip({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return /(?:^|[,\s])gzip(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(headers['accept-encoding'] ?? '');
}
