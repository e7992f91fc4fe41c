/** Tells loopback names and addresses from others; traffic to them leaves the machine on no network. Pure; no name is resolved. */

/** True for `localhost`, 127.0.0.0/8 and ::1, with or without brackets; false for other names, even if they resolve to loopback. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare === '::1' || /^127(?:\.(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])){3}$/.test(bare);
}
