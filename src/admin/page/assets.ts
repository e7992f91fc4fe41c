/** The files of the page: named by their hash, so that browsers may cache them without expiry, and compressed for clients that accept gzip. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { readAsset } from '../../platform/asset.ts';
import { createProblemResponse, type AdminResponse } from '../admin-response.ts';

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

const FILES = ['page.js', 'plots.js', 'page.css', 'uPlot.js', 'uPlot.css', 'icon.svg'] as const;

export type PageAssetPaths = Readonly<Record<(typeof FILES)[number], string>>;

export type PageAssets = Awaited<ReturnType<typeof loadPageAssets>>;

/** @throws the file system's error when a file is missing */
export async function loadPageAssets() {
  const files = new Map<string, PageAsset>();
  const paths: Partial<Record<(typeof FILES)[number], string>> = {};
  for (const name of FILES) {
    const uncompressed = name === 'icon.svg' ? Buffer.from(ICON_SVG) : readAsset(name);
    const hash = createHash('sha256').update(uncompressed).digest('base64url').slice(0, 12);
    const [base, extension] = name.split('.') as [string, keyof typeof CONTENT_TYPES];
    const compressed = await compress(uncompressed, { level: 9 });
    paths[name] = `/assets/${base}-${hash}.${extension}`;
    files.set(paths[name], { type: CONTENT_TYPES[extension], tag: `"${hash}"`, uncompressed, compressed });
  }
  return {
    paths: paths as PageAssetPaths,
    respond(request: Pick<IncomingMessage, 'headers' | 'url'>): AdminResponse {
      const file = files.get(request.url?.split('?', 1)[0] ?? '');
      if (file !== undefined) return respondWithAsset(file, request);
      const detail = 'The page has no such file: reload the page.';
      return createProblemResponse({ status: 404, code: 'NOT_FOUND', detail });
    },
  };
}

export async function compressResponse(
  response: AdminResponse,
  request: Pick<IncomingMessage, 'headers'>,
): Promise<AdminResponse> {
  const headers = { ...response.headers, Vary: 'Accept-Encoding' };
  if (!acceptsGzip(request)) return { ...response, headers };
  return { ...response, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: await compress(response.body) };
}

function respondWithAsset(
  { type, tag, uncompressed, compressed }: PageAsset,
  request: Pick<IncomingMessage, 'headers'>,
): AdminResponse {
  const cacheHeaders = { 'Cache-Control': 'private, max-age=31536000, immutable', ETag: tag, Vary: 'Accept-Encoding' };
  if (request.headers['if-none-match']?.includes(tag) === true) return { status: 304, headers: cacheHeaders, body: '' };
  const headers = { ...cacheHeaders, 'Content-Type': type };
  return acceptsGzip(request)
    ? { status: 200, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: compressed }
    : { status: 200, headers, body: uncompressed };
}

/** Accept-Encoding names gzip with a weight above zero (RFC 9110 §12.5.3). */
function acceptsGzip({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return /(?:^|[,\s])gzip(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(headers['accept-encoding'] ?? '');
}
