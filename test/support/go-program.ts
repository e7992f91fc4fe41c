/** For short runs of programs in Go, which collect garbage too often by default: kubectl takes a third less CPU time. */
export const GO_ENV = { GOGC: '400' } as const;
