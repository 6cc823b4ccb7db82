// The rival of `sloop --version`: a compiled program that does nothing.

export {};
