/**
 * The query parameters that the sidecar adds to each call of a route. They exist only in what is sent: the path that logs, records and
 * errors have is the client's. Parameters are what `&` separates (URL standard, application/x-www-form-urlencoded). Pure.
 */
import { decodePercent, type Redact } from '../platform/secret-redaction.ts';

export interface AddedQuery {
  /** Path and query as they are sent: the client's parameters of these names are removed, the others stay byte for byte. */
  readonly addTo: (path: string) => string;
  /** A header value of a response, without the parameters. @param isOwnServer the reference leads to the server that they are for */
  readonly removeFrom: (reference: string, isOwnServer: boolean) => string;
  /** Masks what is left of the values, such as one within another parameter. */
  readonly redact: Redact;
}

/** @param own at least one name with its value, not encoded */
export function createAddedQuery(own: readonly (readonly [string, string])[], redact: Redact): AddedQuery {
  const values = new Map(own.map(([name, value]) => [name.toLowerCase(), value]));
  const added = own.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
  const isForeign = (parameter: string): boolean => !values.has(decodeName(parameter));
  const isOtherValue = (parameter: string): boolean => {
    const value = decodeForm(parameter.slice(parameter.indexOf('=') + 1));
    return isForeign(parameter) || (value !== values.get(decodeName(parameter)) && redact(value) === value);
  };
  return {
    addTo: (path) => {
      const [before, rest] = filterQuery(path, isForeign);
      return `${before}?${rest === undefined || rest === '' ? '' : `${rest}&`}${added}`;
    },
    removeFrom: (reference, isOwnServer) => {
      const [, target = '', fragment = ''] = /^([^#]*)(.*)$/s.exec(reference) ?? [];
      const [before, rest] = filterQuery(target, isOwnServer ? isForeign : isOtherValue);
      return before + (rest === undefined ? '' : `?${rest}`) + fragment;
    },
    redact,
  };
}

/** What stands before the query, and the parameters that are kept; undefined without a query, or when none of several is left. */
function filterQuery(target: string, isKept: (parameter: string) => boolean): [before: string, rest?: string] {
  const at = target.indexOf('?');
  if (at < 0) return [target];
  const before = target.slice(0, at);
  const parameters = target.slice(at + 1).split('&');
  const kept = parameters.filter(isKept);
  return kept.length === 0 ? [before] : [before, kept.join('&')];
}

function decodeName(parameter: string): string {
  return decodeForm(parameter.split('=', 1)[0] ?? '').toLowerCase();
}

function decodeForm(text: string): string {
  return decodePercent(text.replaceAll('+', ' '));
}
