/** Milliseconds of CPU that this process has used: what work costs does not depend on the load of the machine. */
export function readCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
