/** The id that an upstream gave to a call, in the header fields that APIs and gateways use for one. Pure. */
import { REQUEST_ID } from '../platform/request-id.ts';

/** The first that is there, and valid, is taken. */
const NAMES = ['x-request-id', 'x-correlation-id', 'request-id', 'x-amzn-requestid', 'cf-ray'];
/** By the length of a name: most fields are passed over without a lower-case copy. */
const IS_LENGTH_OF_NAME: readonly boolean[] = Array.from({ length: 17 }, (_, length) =>
  NAMES.some((name) => name.length === length),
);

/** @param headers flat list [name, value, …] of a response @returns undefined when there is no valid one */
export function findUpstreamRequestId(headers: readonly string[]): string | undefined {
  let found: string | undefined;
  let rank = NAMES.length;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    if (IS_LENGTH_OF_NAME[name.length] !== true) continue;
    const nameRank = NAMES.indexOf(name.toLowerCase());
    const value = headers[at + 1] ?? '';
    if (nameRank < 0 || nameRank >= rank || !REQUEST_ID.test(value)) continue;
    found = value;
    rank = nameRank;
  }
  return found;
}
