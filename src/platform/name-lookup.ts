/**
 * Looks up the addresses of a name. A look-up occupies a thread until the name server responds, and libuv gives look-ups half of its
 * threads: so all that wait for the same name share one look-up.
 */
import dns, { type LookupAddress } from 'node:dns';

/** The addresses in the order of getaddrinfo, at least one. @throws Error with the code of getaddrinfo */
export type LookUpName = (name: string) => Promise<readonly LookupAddress[]>;

/** A result, or a fault, is for those that waited for it: the next call starts a new look-up. */
export function shareLookUps(lookUp: LookUpName): LookUpName {
  const pending = new Map<string, ReturnType<LookUpName>>();
  return (name) => {
    const shared = pending.get(name) ?? lookUp(name).finally(() => pending.delete(name));
    pending.set(name, shared);
    return shared;
  };
}

/** As the connections of Node.js do: only addresses of families that this machine has an address of, except on Windows. */
const HINTS = process.platform === 'win32' ? 0 : dns.ADDRCONFIG;

export const lookUpName: LookUpName = shareLookUps(
  (name) =>
    new Promise((resolve, reject) => {
      dns.lookup(name, { all: true, hints: HINTS }, (fault, addresses) => {
        if (fault === null) resolve(addresses);
        else reject(fault);
      });
    }),
);
