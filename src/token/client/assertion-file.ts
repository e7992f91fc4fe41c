/** Reads an assertion that another party writes into a file, such as a projected service-account token of Kubernetes. */
import { realpath } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import { findAssertionFault, parseAssertion, type AssertionClaims } from './assertion-claims.ts';
import { describeUnreadable, readTextFile, type Unreadable } from './secret-file.ts';

export interface AssertionFile {
  readonly path: string;
  readonly audience: string;
  /** Where Kubernetes mounts the token for its own API server. Default: `CLUSTER_TOKEN_FOLDER` */
  readonly clusterTokenFolder?: string;
}

export type AssertionReadResult =
  | { readonly kind: 'read'; readonly assertion: string; readonly claims: AssertionClaims }
  | Unreadable;

const CLUSTER_TOKEN_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/** As the longest access token; servers limit the size of a form. */
export const LARGEST_ASSERTION_BYTES = 16 * 1024;

/** The kubelet replaces the folder of the file as a whole: what was found before may be gone now. */
const MAX_READS = 5;

/** The assertion, without one trailing line end. Never rejects. @param wallNow epoch milliseconds */
export async function readAssertionFile(file: AssertionFile, wallNow: number): Promise<AssertionReadResult> {
  const unreadable = (fault: string): Unreadable => describeUnreadable('auth.assertionFile', file.path, fault);
  for (let reads = 0; reads < MAX_READS; reads++) {
    const realPath = await resolveLinks(file.path);
    if (await isClusterToken(file, realPath))
      return unreadable(
        `is the cluster's default token, which must not leave the cluster; expected a projected token for auth.assertionFileAudience, ${JSON.stringify(file.audience)}`,
      );
    const reading = await readTextFile('auth.assertionFile', file.path, LARGEST_ASSERTION_BYTES);
    // What was read is what was checked only if the links lead where they led before.
    if ((await resolveLinks(file.path)) !== realPath) continue;
    if (reading.kind === 'unreadable') return reading;
    const assertion = reading.value.replace(/\r?\n$/, '');
    if (assertion === '') return unreadable('is empty; expected a JWT');
    const claims = parseAssertion(assertion);
    if (typeof claims === 'string') return unreadable(claims);
    const fault = findAssertionFault(claims, file.audience, wallNow);
    return fault === undefined ? { kind: 'read', assertion, claims } : unreadable(fault);
  }
  return unreadable('was replaced each time that it was read');
}

/** As configured and with all links followed, so that no link leads into the folder unseen, and none out of it. */
async function isClusterToken(
  { path, clusterTokenFolder = CLUSTER_TOKEN_FOLDER }: AssertionFile,
  realPath: string | undefined,
): Promise<boolean> {
  const folders = [resolve(clusterTokenFolder), await resolveLinks(clusterTokenFolder)];
  const paths = [resolve(path), realPath];
  return folders.some((folder) => paths.some((one) => folder !== undefined && one?.startsWith(folder + sep)));
}

async function resolveLinks(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch {
    // Reading the file reports the fault.
    return undefined;
  }
}
