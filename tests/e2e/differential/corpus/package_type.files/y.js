export default "from y";
