export default 5; export const a = 1;
