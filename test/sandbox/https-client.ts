/** One identity for the simulated servers of a test file, and a `fetch` that trusts its authority alone. */
import { Agent, fetch as undiciFetch, type RequestInit, type Response } from 'undici';
import { createServerIdentity } from '../../src/sandbox/certificate.ts';

export const IDENTITY = createServerIdentity(Date.now());

/** @param authority in PEM */
export function trusting(authority: string) {
  const dispatcher = new Agent({ connect: { ca: authority } });
  return (url: string | URL, options: RequestInit = {}): Promise<Response> =>
    undiciFetch(url, { dispatcher, ...options });
}

export const fetch = trusting(IDENTITY.authority);
