/** One identity for the simulated servers of a test file, and a `fetch` that trusts it alone. */
import { Agent, fetch as undiciFetch, type RequestInit, type Response } from 'undici';
import { createServerIdentity } from '../../src/sandbox/certificate.ts';

export const IDENTITY = createServerIdentity(Date.now());

/** @param certificate in PEM @param connections at most */
export function trusting(certificate: string, connections = 100) {
  const dispatcher = new Agent({ connect: { ca: certificate }, connections });
  return (url: string | URL, options: RequestInit = {}): Promise<Response> =>
    undiciFetch(url, { dispatcher, ...options });
}

export const fetch = trusting(IDENTITY.cert);
