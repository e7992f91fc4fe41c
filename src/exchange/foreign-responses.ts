/**
 * Recognizes a response that is none of the API although its status says success (pure): a web page that was not asked for, or a redirect
 * to another server or, for good, to another path, where the same operation has responded as an API before. Pages and redirects that an operation gives from its start are
 * its own. attempt.ts reports what is found here; interception.ts recognizes what refuses a call.
 */
import { findOtherServer } from '../upstream/references.ts';
import { findHeaderValues, type ResponseHead } from '../upstream/upstream-response.ts';
import { WEB_PAGE } from './interception.ts';

/** What the responses of an operation are compared with. */
export interface ForeignResponseRequest {
  /** As `describeEndpoint` names it. */
  readonly operation: string;
  /** The URL of the request, with its origin. */
  readonly url: string;
  readonly accept: string | undefined;
}

/** With more, paths contain names, and one operation seldom repeats. */
const MAX_OPERATIONS = 500;
/** The kind of an operation whose first response was a page or led elsewhere; no content type. */
const PAGE = 'page';
/** Pictures of web pages may be XML. */
const OF_API = /^(?!\s*(?:image\/|application\/xhtml)).*(?:json|xml)/i;
const NOT_ACCEPTED = /;\s*q\s*=\s*0(?:\.0*)?\s*$/;
const ANY_PAGE = /^\s*(?:\*|text\/\*|application\/\*\s*(?:;|$))/;
/** What HttpURLConnection of the JDK sends where an application sets nothing. */
const DEFAULT_OF_JDK = 'text/html, image/gif, image/jpeg, *';

const MOVED: ReadonlySet<number> = new Set([301, 308]);
/** The server of the API says so itself. */
export const OTHER_PATH = 'to another path of the same server';

export class ForeignResponses {
  /** The content type of each operation that responds as an API does, empty without content. A success with it needs no `describe`. */
  readonly usualTypes = new Map<string, string>();
  #hasApi = false;
  #hasPages = false;

  /** What came and what was expected, fit for a log; undefined for a response that may be the API's. @param head with a status below 400 */
  describe(head: ResponseHead, request: ForeignResponseRequest): string | undefined {
    const { status, contentType = '' } = head;
    const { operation, accept } = request;
    const usual = this.usualTypes.get(operation);
    const seen = status < 300 ? describePage(head, accept) : describeRedirect(head, request.url);
    if (seen === undefined) {
      const isApi = status < 300 && (contentType === '' || OF_API.test(contentType));
      if (isApi) this.#hasApi = true;
      if (isApi && usual !== PAGE) this.#keep(operation, contentType);
      return undefined;
    }
    const wasApi = usual === undefined ? this.#isFull && !this.#hasPages : usual !== PAGE;
    if (usual === undefined) this.#keep(operation, PAGE);
    if (wasApi) return `${String(status)} ${seen} instead of ${nameFormat(usual ?? '')}`;
    // Without a response of the API so far, the application's word counts: it cannot read a page.
    const isUnusable = status < 300 && !this.#hasApi && readUseOfPages(accept) === 'ruled out';
    return isUnusable ? `${String(status)} ${seen} instead of ${nameFormat(accept ?? '')}` : undefined;
  }

  get #isFull(): boolean {
    return this.usualTypes.size >= MAX_OPERATIONS;
  }

  #keep(operation: string, type: string): void {
    if (this.#isFull && !this.usualTypes.has(operation)) return;
    this.usualTypes.set(operation, type);
    if (type === PAGE) this.#hasPages = true;
  }
}

function describePage({ status, contentType = '' }: ResponseHead, accept: string | undefined): string | undefined {
  const page = WEB_PAGE.exec(contentType)?.[0].trim();
  const hasPage = page !== undefined && status !== 204 && status !== 205;
  return hasPage && readUseOfPages(accept) !== 'asked for' ? `with ${page}` : undefined;
}

function describeRedirect(head: ResponseHead, url: string): string | undefined {
  if (head.status === 304) return undefined;
  const [location] = findHeaderValues(head.headers, 'location');
  const server = location === undefined ? undefined : findOtherServer(location, url);
  if (server !== undefined) return `to ${server}`;
  // Other redirects may be how an operation responds.
  return location !== undefined && MOVED.has(head.status) ? OTHER_PATH : undefined;
}

function readUseOfPages(accept: string | undefined): 'asked for' | 'possible' | 'ruled out' {
  if (accept === undefined || accept.startsWith(DEFAULT_OF_JDK)) return 'possible';
  const ranges = accept
    .toLowerCase()
    .split(',')
    .filter((range) => !NOT_ACCEPTED.test(range));
  if (ranges.some((range) => WEB_PAGE.test(range))) return 'asked for';
  return ranges.some((range) => ANY_PAGE.test(range)) ? 'possible' : 'ruled out';
}

/** @param types a content type, or several */
function nameFormat(types: string): string {
  if (/json/i.test(types)) return 'JSON';
  return /xml/i.test(types) ? 'XML' : 'a response of the API';
}
